/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The frames of a stack. A stack is carried as one line, "file:line:function -> ...", the outermost
 * first: that is what old clients send and what their reports print. A native frame says at its end which
 * file of code it is in, "function @ module"; one without names is "module+0xoffset".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_ARROW " -> "
#define FRAMES_AT " @ "
#define FRAMES_APPROXIMATE \
	" (approximate)" /* behind the function of a frame that was seen earlier */

struct frames_one {
	const char *function; /* NULL = not known; likewise the next two */
	const char *file;
	const char *module;
	uint32_t line; /* 0 = not known */
	bool is_python;
	bool is_approximate; /* seen earlier, and may have gone on since */
};

/* A walk along a line, innermost first. */
struct frames {
	char *copy;
	char *end; /* of what is still to be told; NULL = nothing */
};

/* @stack may be NULL. Without memory there are no frames. */
void frames_init(struct frames *frames, const char *stack);
void frames_deinit(struct frames *frames);

/* False: that was all. The texts live until the walk's end. */
bool frames_next(struct frames *frames, struct frames_one *ret_frame);

/* Whether its function is only "module+0xoffset". */
bool frames_is_address(const struct frames_one *frame);

/*
 * Whether a frame only tells ttmem of memory, so that it says nothing of who wanted it: ttmem's own code for
 * tt-metal, and the names of tt-metal that this stands behind. Either may be NULL. Left out at the innermost end.
 */
bool frames_is_reporting(const char *function, const char *module);

/*
 * The line as people read it: without the C library's frames at its beginning and without the module of frames
 * that have a file. Cut to fit.
 */
const char *frames_plain(const char *stack, char *ret_text, size_t size);

/*
 * What of a stack stays the same when lines move, and from one machine to another: for each frame its function
 * and the name of its file without folders (of code without debug information its module instead; of code
 * without names the module alone, once), innermost first, "a.cpp:load <- model.py:step". Left out are
 * the C library, whatever called main(), and pytest with whatever called it. Empty if nothing is left.
 * Cut to fit; returns @ret_text.
 */
#define FRAMES_CALLED_BY " <- "
const char *frames_calls(const char *stack, char *ret_text, size_t size);
