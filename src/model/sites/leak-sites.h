/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ended processes have left, added up by call site and type since the start. Programs choose
 * their call sites, so only so many have rows of their own; what comes later is added to one row for
 * each type, so that the sum over all rows is right. A row stays: it is a counter, which must not go
 * down.
 */

#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

struct snapshot;
struct snapshot_buffer;

#define LEAK_SITES_MAX 256u  /* rows of any site and type, without the others */
#define LEAK_SITES_TEXT 160u /* longer texts are cut */
#define LEAK_SITES_OTHER "other"

struct leak_site {
	char site[LEAK_SITES_TEXT];
	uint32_t type;
	uint32_t user; /* who had it first, and whose share its row is */
	uint64_t bytes, buffers;
};

/* Has no pointers: may be copied. */
struct leak_sites {
	size_t count;
	struct leak_site rows[LEAK_SITES_MAX];
	struct leak_site others[BOOK_TYPES]; /* their site is LEAK_SITES_OTHER if they have any */
};

/* Adds what @process of the snapshot has left: its listed buffers, and what its counters have more. */
void leak_sites_add(struct leak_sites *sites, const struct snapshot *snapshot, uint32_t process);

/* Adds the rows of another one. A user may have as many rows as are then left for all others. */
void leak_sites_merge(struct leak_sites *to, const struct leak_sites *from);

/*
 * What stands for the call site of a buffer, for labels: the frame that stands for its stack; without
 * one its name without numbers, or "in PHASE". Cut to fit. Returns @ret_text.
 */
const char *leak_sites_text(const struct snapshot_buffer *buffer, char *ret_text, size_t size);
