/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the pickle for memory_viz: export-memory-viz.c and export-viz-frames.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/map.h"
#include "cli/export/visualizer/export-stacks.h"

struct export_target;
struct stack;

/* What is remembered in the pickle: words; and by number: traces of devices, frames, lists of frames. */
enum viz_word {
	VIZ_ACTION,
	VIZ_ADDR,
	VIZ_SIZE,
	VIZ_STREAM,
	VIZ_TIME,
	VIZ_FRAMES,
	VIZ_NAME,
	VIZ_FILE,
	VIZ_LINE,
	VIZ_TRACES,
	VIZ_ADDRESS,
	VIZ_REQUESTED,
	VIZ_STATE,
	VIZ_WORDS,
};

enum {
	VIZ_MEMO_WORD = 0,
	VIZ_MEMO_TRACE = 1,
	VIZ_MEMO_FRAME = 2,
	VIZ_MEMO_FRAMES = 3,
	VIZ_MEMO_SHIFT = 2,
};

/* A device of a process: one of memory_viz. */
struct viz_device {
	uint32_t pid;
	uint32_t device;
	uint32_t lanes;
};

struct viz_lane {
	uint32_t device; /* its number */
	uint32_t type;
	uint32_t space;
	uint64_t offset;
	uint64_t banks;
	uint64_t low, high; /* of all addresses in it */
	uint64_t capacity;  /* 0 = not known */
};

struct viz {
	struct export_target *target;
	FILE *out;
	struct export_stacks stacks;
	struct map device_index, lane_index;
	bool has_processes; /* more than one */
	struct viz_device *devices;
	size_t device_capacity;
	struct viz_lane *lanes;
	size_t lane_capacity;
	uint32_t frames;         /* that are remembered */
	unsigned char *is_known; /* nodes whose list of frames is remembered */
	size_t known_capacity;
};

/* Remembers all words, as members of the dictionary below. */
void viz_remember_words(struct viz *viz);

/* Pushes a word. */
void viz_word(const struct viz *viz, enum viz_word word);

/* Sets a member of the dictionary below. */
void viz_set_number(const struct viz *viz, enum viz_word word, uint64_t value);
void viz_set_text(const struct viz *viz, enum viz_word word, const char *text);

/*
 * Finds the frames of a buffer: "TYPE NAME", then its stack, innermost first. What is new is remembered by
 * way of the dictionary below.
 */
uint32_t viz_find_frames(struct viz *viz, uint32_t type, const char *name,
			 const struct stack *stack);

/* Pushes the list of them. */
void viz_put_frames(struct viz *viz, uint32_t node);
