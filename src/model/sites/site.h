/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The frame that stands for a stack: the innermost one of the application. Frames of ttmem, of the C
 * library, of language runtimes and of tt-metal only pass the call on, and so do allocators that
 * someone has named: in TTMEM_SKIP_FRAMES, in the daemon's settings, or by ttmem_skip_frames() in the
 * program itself. This is the only place that chooses; every document has the result as "site".
 *
 * A frame with a file is preferred, because it can be looked up. Where no frame of the application
 * has one, the innermost function counts; where the application has no frame at all, the innermost
 * one of a runtime, but never the code that starts programs.
 *
 * What people look for is the line of their own code, which may lie further out: the innermost frame
 * that is the user's (model/sites/site-owner.h), the function that it called, and who called it.
 */

#include <stdbool.h>

#include "model/sites/site-owner.h"
#include "model/sites/stack.h"

#define SITE_CALLERS 8u

/* Frames point into the texts of those that were considered. */
struct site {
	struct frame frame;
	struct frame user;
	struct frame via; /* the function of others that the user's frame called */
	struct frame callers[SITE_CALLERS]; /* the user's, nearest first, without recursion */
	unsigned int rank;                  /* 0 = there is no frame; likewise the next two */
	unsigned int user_rank;
	bool has_via;
	unsigned int caller_count;

	/* Private. */
	struct frame inner; /* the last one that says what its caller called */
	bool has_inner;
};

#define SITE_NULL ((struct site){.rank = 0})

/* Call it for all frames of a stack, innermost first. */
void site_consider(struct site *site, const struct frame *frame);

/* All of a stack (NULL = none). False: it has no site. */
bool site_choose(const struct stack *stack, struct site *ret_site);

/* The frame that stands for it alone, which is cheaper. NULL = none. */
const struct frame *site_find(const struct stack *stack);

/*
 * "function (file:line)" of the frame that stands for a stack, the file without folders; the module if there is
 * no file. Truncated to fit; empty if there is none. Returns @ret_text.
 */
const char *site_text(const struct stack *stack, char *ret_text, size_t size);

/* The same of any frame, with the folders. */
const char *site_frame_text(const struct frame *frame, char *ret_text, size_t size);
