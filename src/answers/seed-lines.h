/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The lines of the old allocation server, byte for byte, because scripts and people rely on them:
 * for "ttmem watch --format seed" and for "ttmemd --log-events". The old server had no event for a
 * size change: it is printed as a free, which says so at its end, and an allocation. Numbers are printed as by C++ streams,
 * with six significant digits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

/* Behind the line of a free that is the first half of a size change. */
#define SEED_LINES_RESIZED ", allocated anew with another size"

/* Longer than any line below. */
#define SEED_LINES_SIZE 512u

#define SEED_LINES_MB (1024.0 * 1024.0)

struct seed_lines_event {
	const struct book_event *event;
	uint32_t uid; /* who made the process's book; not in the line */
	uint32_t pid;
	uint32_t device;
	uint32_t kernel_sort;
	uint64_t
		total; /* bytes of this type on the device after it; for circular buffers and kernels */
	bool decimal; /* ids in decimal, as the first servers had them */
};

/* What an exited process left. */
struct seed_lines_dead {
	uint32_t pid;
	uint64_t buffers, bytes;
	uint64_t cbs, cb_bytes;
	uint64_t kernels, kernel_bytes;
};

/* The line of an event, with its newline; 0 if it has none. Return: its length. */
size_t seed_lines_event(const struct seed_lines_event *event, char ret_text[SEED_LINES_SIZE]);

/* Whether the line of this event contains a total. */
bool seed_lines_has_total(const struct book_event *event);

/* The lines for a process that has ended and left something. Return: their length. */
size_t seed_lines_dead(const struct seed_lines_dead *dead, char ret_text[SEED_LINES_SIZE]);

/* "Application", "Fabric", "Dispatch". */
const char *seed_lines_sort(uint32_t kernel_sort);
