/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A box for descriptors: a pair of sockets, with the descriptors in messages that nobody reads. Whoever
 * holds one end holds them all, so a keeper or systemd needs one descriptor for any number of
 * connections, and learns nothing when one more is put in. Single ones cannot be taken out: the owner
 * packs another box now and then.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/files/fd-pass.h"

/* With 64 in each message, 4096 descriptors need less than half of a socket's buffer. */
#define LEGACY_BOX_BATCH FD_PASS_MAX

struct legacy_box {
	int out; /* the end to hold; -1 = no box */
	int in;
	uint32_t messages; /* since it was packed */
};

#define LEGACY_BOX_NULL ((struct legacy_box){.out = -1, .in = -1})

/* 0 or a negative errno. */
int legacy_box_init(struct legacy_box *box);
void legacy_box_deinit(struct legacy_box *box);

/* Puts descriptors in, each with a number; LEGACY_BOX_BATCH at most. 0 or a negative errno. */
int legacy_box_put(struct legacy_box *box, const uint32_t *numbers, const int *fds, size_t count);

/*
 * Calls @found for everything in a box of which only @out is known; it owns each fd. The box stays as
 * it is. 0 or a negative errno.
 */
typedef void legacy_box_fn(void *context, uint32_t number, int fd);

int legacy_box_list(int out, legacy_box_fn *found, void *context);
