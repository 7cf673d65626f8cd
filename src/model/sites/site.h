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
 */

#include <stdbool.h>

#include "model/sites/frames.h"

struct site {
	struct frames_one frame; /* points into the texts of the frames that were considered */
	unsigned int rank;       /* 0 = none was found */
};

#define SITE_NULL ((struct site){.rank = 0})

/* Call it for the frames of a stack, innermost first. */
void site_consider(struct site *site, const struct frames_one *frame);

/* The site of a stack (NULL = none). False: there is none. Texts live as long as @frames. */
bool site_find(struct frames *frames, const char *stack, struct frames_one *ret_frame);

/*
 * "function (file:line)", the file without folders; the module if there is no file. Truncated to
 * fit; empty if there is none. Returns @ret_text.
 */
const char *site_text(const char *stack, char *ret_text, size_t size);
const char *site_frame_text(const struct frames_one *frame, char *ret_text, size_t size);

/*
 * Frames that the rest of this process passes over, as in model/sites/frame-patterns.h; added to earlier
 * ones. Only before other threads are started. 0 or -ENOMEM.
 */
int site_skip_frames(const char *patterns);
