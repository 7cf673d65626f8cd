/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The child that looks into one file, and how it is asked. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/namer.h"
#include "symbol/resolve.h"

struct naming_child {
	pid_t pid; /* 0 = there is none */
	int socket;
};

struct naming_answer {
	uint32_t count;     /* of frames */
	uint32_t has_debug; /* there was debug information to look into */
	struct resolve_frame frames[RESOLVE_FRAMES_MAX];
};

/*
 * Starts one for the file that @place is in. @debug: a file with its debug information, only lent; -1 = it
 * is looked for on this machine. 0 or a negative errno: there is no such file, for one.
 */
int naming_child_start(struct naming_child *ret_child, const struct namer_place *place, int debug);

/* Ends it, if there is one. */
void naming_child_end(struct naming_child *child);

/* 0 or a negative errno; then the child has been ended. The answer is checked. */
int naming_child_ask(struct naming_child *child, uint64_t address,
		     struct naming_answer *ret_answer);
