/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where CPython keeps what a stack needs: the frames of a thread, and of a frame its code and line. Only
 * reads, and only what belongs to the calling thread or cannot change while one of its frames runs that
 * code, so it works without the GIL.
 *
 * None of this is promised by CPython, so it is written down for each version as its final release has
 * it, and used only where a self-check at import found that it says the same as the public functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LAYOUT_TEXT_SIZE 1024 /* with the final NUL; longer ones are cut */
#define LAYOUT_UNIT 2         /* bytes of an instruction, and of a place in its cache */

/* Who owns a frame; other values do not matter here. */
#define LAYOUT_OWNER_GENERATOR 1
#define LAYOUT_OWNER_RUN \
	3 /* from 3.12 on: an extra frame, on the stack of the run that it begins */

/* Offsets, in bytes. */
struct layout {
	uint32_t version;        /* 0x030b for 3.11 */
	uint16_t thread_current; /* of a thread: its innermost frame, or where that is said */
	bool is_indirect;       /* ... which is in a struct on the stack of the interpreter's run */
	bool has_entry_mark;    /* frames say whether they are entries; else an extra one follows */
	uint16_t current_frame; /* in that struct */
	uint16_t current_previous; /* likewise: the one of the run further out */
	uint16_t frame_code;
	uint16_t frame_previous;
	uint16_t frame_at; /* the instruction */
	uint16_t frame_entry;
	uint16_t frame_owner;
	uint16_t code_first_line;
	uint16_t code_file;
	uint16_t code_name;
	uint16_t code_lines;
	uint16_t code_ready;  /* how many instructions only prepare the frame */
	uint16_t code_begin;  /* of its instructions; also the size of the type */
	uint16_t text_ascii;  /* of a str: its bytes, if they are ASCII */
	uint16_t text_others; /* and if they are not */
};

struct layout_frame {
	const void *code;
	const void *at;
	const void *
		place; /* of an entry, on the stack; NULL = the next one out was called by this run */
};

struct layout_walk {
	const struct layout *layout;
	const char *current; /* the struct on the stack, where there is one */
	const char *frame;
};

/* NULL = not known. @version is as PY_VERSION_HEX. */
const struct layout *layout_find(uint32_t version);

/* 0 = not known. */
uint32_t layout_line(const struct layout *layout, const struct layout_frame *frame);

/* Function and file as UTF-8. Return: their length. */
size_t layout_function(const struct layout *layout, const void *code, char *ret_text);
size_t layout_file(const struct layout *layout, const void *code, char *ret_text);

/* A number of everything that makes up function, file and line of any place in @code. */
uint64_t layout_hash(const struct layout *layout, const void *code);

static inline const void *layout_pointer(const void *at, size_t offset)
{
	const void *pointer;

	memcpy(&pointer, (const char *)at + offset, sizeof(pointer));
	return pointer;
}

/* Frames that are only being made, and helpers of the interpreter: nobody is shown those. */
static inline bool layout_is_hidden(const struct layout_walk *walk)
{
	const struct layout *layout = walk->layout;
	const char *code = layout_pointer(walk->frame, layout->frame_code);
	int32_t ready;

	if ((uint8_t)walk->frame[layout->frame_owner] == LAYOUT_OWNER_GENERATOR)
		return false;
	memcpy(&ready, code + layout->code_ready, sizeof(ready));
	return (intptr_t)layout_pointer(walk->frame, layout->frame_at) <
	       (intptr_t)(code + layout->code_begin) + (intptr_t)ready * LAYOUT_UNIT;
}

static inline bool layout_is_run(const struct layout_walk *walk)
{
	return !walk->layout->has_entry_mark &&
	       (uint8_t)walk->frame[walk->layout->frame_owner] == LAYOUT_OWNER_RUN;
}

/* The place of this run if the frame is its end, or NULL. From then on it is another run. */
static inline const void *layout_leave(struct layout_walk *walk)
{
	const char *place = walk->current;

	if (!walk->layout->has_entry_mark)
		return layout_is_run(walk) ? walk->frame : NULL;
	if (!place || !walk->frame[walk->layout->frame_entry])
		return NULL;
	walk->current = layout_pointer(place, walk->layout->current_previous);
	return place;
}

/* Goes on to a frame that is shown. Return: the place of the run whose end was passed; NULL = of none. */
static inline const void *layout_settle(struct layout_walk *walk)
{
	const void *place = NULL;

	while (walk->frame && (layout_is_run(walk) || layout_is_hidden(walk))) {
		const void *left = layout_leave(walk);

		if (!place)
			place = left;
		walk->frame = layout_pointer(walk->frame, walk->layout->frame_previous);
	}
	return place;
}

/* @thread is the calling thread's PyThreadState. */
static inline void layout_begin(struct layout_walk *walk, const struct layout *layout,
				const void *thread)
{
	const void *current = layout_pointer(thread, layout->thread_current);

	walk->layout = layout;
	walk->current = layout->is_indirect ? current : NULL;
	walk->frame =
		layout->is_indirect ? layout_pointer(current, layout->current_frame) : current;
	(void)layout_settle(walk); /* of a run that shows nothing */
}

/* The next frame further out; false = there is none. */
static inline bool layout_next(struct layout_walk *walk, struct layout_frame *ret_frame)
{
	const struct layout *layout = walk->layout;
	const void *passed;

	if (!walk->frame)
		return false;
	ret_frame->code = layout_pointer(walk->frame, layout->frame_code);
	ret_frame->at = layout_pointer(walk->frame, layout->frame_at);
	ret_frame->place = layout_leave(walk);
	walk->frame = layout_pointer(walk->frame, layout->frame_previous);
	passed = layout_settle(walk);
	if (!ret_frame->place)
		ret_frame->place = passed;
	return true;
}
