/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A stack is a list of frames. A pool holds each distinct stack once, so that stacks of one pool are
 * compared by pointer.
 *
 * As text it is one line, "file:line:function -> ...", outermost first: old clients send this form,
 * databases store it, and reports print it. A native frame ends with the file of code it is in,
 * "function @ module"; one without names is "module+0xoffset", with the build id of its module, so that
 * it can still get a name later.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/text.h"

struct frame {
	const char *function; /* NULL = not known; likewise the next two */
	const char *file;
	const char *module;
	const char *build_id; /* of the module, in hex; NULL = not known, or not needed */
	uint32_t line;        /* 0 = not known */
	bool is_python;       /* of a stack: its file says so */
	bool is_approximate;  /* seen earlier, and may have moved on since */
	bool is_cut;          /* its callers could not be found */
	bool is_skipped;      /* an allocator that its program named: does not stand for a stack */
};

struct stack {
	size_t count;          /* at least 1 */
	struct frame frames[]; /* innermost first; texts of the same pool */
};

/* Puts a stack together, frame by frame. */
struct stack_maker {
	struct pool *pool;

	/* Private. */
	struct stack *stack;
	size_t capacity; /* in bytes */
	bool is_lost;    /* there was no memory for a frame */
};

#define STACK_MAKER_INIT(pool_) ((struct stack_maker){.pool = (pool_)})

/* The next frame, outwards. Its texts are copied; the function "?" is not known. */
void stack_maker_add(struct stack_maker *maker, const struct frame *frame);

/* The stack, after which the maker is empty. NULL: it has no frames, or memory has run out. */
const struct stack *stack_maker_finish(struct stack_maker *maker);

/* A stack of another pool (NULL = none) in this one. NULL also if memory has run out. */
const struct stack *stack_copy(struct pool *pool, const struct stack *stack);

/* A line that an old client or an old file has (NULL = none). NULL if it is empty, or without memory. */
const struct stack *stack_parse(struct pool *pool, const char *line);

/* Finds ":line:" in a frame of such a line; NULL = not there. */
char *stack_find_line(char *part, char **ret_function, uint32_t *ret_line);

/* A frame of such a line, in place. */
struct frame frame_parse(char *part);

/* Replaces its texts by copies in a pool. False: no memory. */
bool frame_keep(struct frame *frame, struct pool *pool);

/* Whether its function is only "module+0xoffset". */
bool frame_is_address(const struct frame *frame);

/*
 * Whether a frame only reports memory to ttmem, and so does not show who allocated it: ttmem's own
 * code for tt-metal, and the tt-metal names that call it. Either may be NULL. Such frames are left
 * out at the innermost end.
 */
bool frame_is_reporting(const char *function, const char *module);

/* A frame as a line has it, truncated to fit. Returns the length that it would need. */
size_t frame_line(const struct frame *frame, char *ret_text, size_t size);

#define STACK_LINE TEXT_CLEAN_SIZE(POOL_TEXT_MAX) /* room for a line */
#define STACK_ARROW " -> "

/* The line of a stack (NULL = none: ""), truncated to fit. Returns @ret_text. */
const char *stack_line(const struct stack *stack, char *ret_text, size_t size);

/* The order of the lines of two stacks of one pool. NULL = none, which comes first. */
int stack_compare(const struct stack *a, const struct stack *b);

/*
 * The line as users read it: without the C library's frames at its beginning, without the module of
 * frames that have a file, without build ids and the mark of skipped frames. @folds: neighbors of one
 * module that have no names become one, "libtorch_cpu.so (12 frames)". Truncated to fit.
 */
const char *stack_plain(const struct stack *stack, bool folds, char *ret_text, size_t size);

/*
 * The part of a stack that stays the same when lines move, and from one machine to another: for
 * each frame its function and its file name without folders (the module instead for code without
 * debug information; the module alone, once, for code without names), innermost first, "a.cpp:load
 * <- model.py:step". Left out are the C library, the callers of main(), and pytest with its
 * callers. Empty if nothing is left. Truncated to fit; returns @ret_text.
 */
#define STACK_CALLED_BY " <- "
const char *stack_calls(const struct stack *stack, char *ret_text, size_t size);

/* Follows a frame that is cut where each frame has a line. */
#define FRAME_CUT_LINE "(cut: no unwind information)"

/*
 * For stacks that are shown with a line for each frame: the frame at @at, or, if it has no name, one for it
 * and those of the same module behind it, whose function is "libtorch_cpu.so (12 frames)". Returns the place
 * of the next one.
 */
#define STACK_SHOWN 256u
size_t stack_shown(const struct stack *stack, size_t at, struct frame *ret_frame,
		   char ret_function[STACK_SHOWN]);
