/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The frames of a stack. A stack is carried as one line, "file:line:function -> ...", outermost
 * first: old clients send this form and their reports print it. A native frame ends with the file
 * of code it is in, "function @ module"; one without names is "module+0xoffset", with the build id of
 * its module, so that it can still get a name later.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_ARROW " -> "
#define FRAMES_AT " @ "
#define FRAMES_APPROXIMATE \
	" (approximate)"            /* follows the function of a frame that was seen earlier */
#define FRAMES_CUT " (cut)"         /* follows one whose callers could not be found */
#define FRAMES_SKIPPED " (skipped)" /* follows one that its program named: ttmem_skip_frames() */
#define FRAMES_BUILD " (build "     /* and hex digits and ")": follows one without a name */

struct frame {
	const char *function; /* NULL = not known; likewise the next two */
	const char *file;
	const char *module;
	const char *build_id; /* of the module, in hex; NULL = not known, or not needed */
	uint32_t line;        /* 0 = not known */
	bool is_python;
	bool is_approximate; /* seen earlier, and may have moved on since */
	bool is_cut;         /* its callers could not be found */
	bool is_skipped; /* an allocator, by its program's own word: does not stand for a stack */
};

/* What follows such a frame where each has a line. */
#define FRAMES_CUT_LINE "(cut: no unwind information)"

/* Iterates over a line, innermost frame first. */
struct frames {
	char *copy;
	char *end; /* of what has not been returned yet; NULL = nothing left */
};

/* @stack may be NULL. If memory runs out there are no frames. */
void frames_init(struct frames *frames, const char *stack);
void frames_deinit(struct frames *frames);

/* False: no more frames. The texts live until the iteration ends. */
bool frames_next(struct frames *frames, struct frame *ret_frame);

/* Whether its function is only "module+0xoffset". */
bool frames_is_address(const struct frame *frame);

/*
 * Whether a frame only reports memory to ttmem, and so does not show who allocated it: ttmem's own
 * code for tt-metal, and the tt-metal names that call it. Either may be NULL. Such frames are left
 * out at the innermost end.
 */
bool frames_is_reporting(const char *function, const char *module);

/*
 * For stacks that are shown with a line for each frame: those of one module that have no names become
 * one, whose function is "libtorch_cpu.so (12 frames)".
 */
#define FRAMES_FOLD_TEXT 256u
struct frames_fold {
	struct frame frame; /* that has not been returned yet */
	unsigned int count; /* of frames in it; 0 = none */
	char text[FRAMES_FOLD_TEXT];
};

#define FRAMES_FOLD_NULL ((struct frames_fold){.count = 0})

/*
 * Takes the next frame, NULL after the last. True: @ret_frame is one to show, as long as the texts of the
 * frames live and until the next call.
 */
bool frames_fold_add(struct frames_fold *fold, const struct frame *frame, struct frame *ret_frame);

/* The same for a line that frames_plain() has written, in place. */
void frames_fold_plain(char *plain);

/*
 * The line as users read it: without the C library's frames at its beginning, without the module of
 * frames that have a file, and without FRAMES_SKIPPED and FRAMES_BUILD. Truncated to fit.
 */
const char *frames_plain(const char *stack, char *ret_text, size_t size);

/*
 * The part of a stack that stays the same when lines move, and from one machine to another: for
 * each frame its function and its file name without folders (the module instead for code without
 * debug information; the module alone, once, for code without names), innermost first, "a.cpp:load
 * <- model.py:step". Left out are the C library, the callers of main(), and pytest with its
 * callers. Empty if nothing is left. Truncated to fit; returns @ret_text.
 */
#define FRAMES_CALLED_BY " <- "
const char *frames_calls(const char *stack, char *ret_text, size_t size);
