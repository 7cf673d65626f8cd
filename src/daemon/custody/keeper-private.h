/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the daemon's side of the keeper; no one else includes this. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process/child.h"
#include "base/threads/loop.h"
#include "daemon/custody/keeper-wire.h"
#include "daemon/custody/keeper.h"

struct keeper_item {
	struct keeper_wire message;
	int fd; /* owned; -1 = none */
};

struct keeper {
	struct loop *loop;
	char *path;
	struct keeper_hooks hooks;
	struct keeper_counts counts;

	struct loop_source link; /* fd -1 = none */
	bool is_new;             /* we started it, so it holds only what we sent */
	bool is_stuck;           /* the next one must replace it */
	struct child starter;
	struct loop_timer tick; /* to retry, or to check whether the queue shrinks */
	uint64_t delay_ns;
	uint64_t linked_ns; /* when this keeper was connected */
	uint64_t moved_ns;  /* when something was last sent from the queue */

	struct keeper_item *queue; /* from @first on */
	size_t first, count, capacity;
};

/* keeper.c */
/* This keeper is no longer usable: another will be started soon. */
void keeper_private_retire(struct keeper *keeper);
