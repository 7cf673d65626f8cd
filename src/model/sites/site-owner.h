/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose code a frame is. Files and modules tell: a folder of installed packages, the standard library,
 * a prefix such as /usr or /opt, the folders and namespaces of well-known frameworks, which count
 * even in a checkout. Everything else is the user's own, but for frames that somebody named to be
 * passed over (model/sites/site.h).
 */

#include <stdbool.h>

#include "model/sites/stack.h"

/* How well a frame stands for its stack. Of equal ones the innermost does. */
enum site_rank {
	SITE_NEVER = 0,
	SITE_RUNTIME, /* of a language, a binding, tt-metal, or what runs the program */
	SITE_NAMED,   /* an allocator of the application that someone named */
	SITE_ADDRESS, /* the application's, without a name */
	SITE_FUNCTION,
	SITE_FILE,
};

enum site_owner {
	SITE_OTHERS = 0,
	SITE_PERHAPS, /* below an installed prefix, or in a library without sources: if nothing is his */
	SITE_OWN, /* the user's */
};

struct site_owner_class {
	enum site_rank rank;
	enum site_owner owner;
	bool is_call; /* says what its caller called: a function, and not only glue */
};

struct site_owner_class site_owner_of(const struct frame *frame);

/* The part of a path that begins with its installed package or framework; NULL = it has none. */
const char *site_owner_package(const char *file);

/*
 * Frames that the rest of this process passes over, as in model/sites/frame-patterns.h; added to earlier
 * ones. Only before other threads are started. 0 or -ENOMEM.
 */
int site_skip_frames(const char *patterns);
