/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recording's events, replayed on another card until one of them fails there. Each device of each
 * process is one chip of that card, with an allocator of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/memory/refit.h"
#include "recording/read/recording.h"

struct scan_book;
struct stacks;

/* One device of one process. */
struct replay_device {
	uint32_t book;
	uint32_t device;
	char card[24];       /* that it was recorded on; "" = not known */
	bool assumes_l1;     /* see refit.h */
	struct refit *refit; /* owned */
	uint64_t *births;    /* owned: of what is in each slot; 0 = nothing */
	size_t slots, capacity;
};

/* As it was at the end, for shapes and texts of all events. */
struct replay_book {
	struct scan_book *book; /* owned; NULL = it cannot be read */
	struct stacks *stacks;  /* owned */
};

/* The first allocation that would have failed. */
struct replay_failed {
	size_t device;      /* index */
	uint64_t time_ns;   /* CLOCK_REALTIME */
	uint64_t number;    /* of the event */
	bool is_from_table; /* it was there when the recording began, or after a gap */
	uint32_t stack, name, phase;
	struct refit_buffer buffer;
	struct refit_failure failure;
};

struct replay_walk {
	struct recording *recording; /* borrowed; likewise the next */
	const char *card_name;       /* NULL = as it was recorded */
	struct refit_card card;
	enum free_list_fit fit;

	struct replay_book *books; /* owned */
	struct replay_device *devices;
	size_t count, capacity;
	size_t last; /* index of the device that was found last */
	bool has_failed;
	struct replay_failed failed;

	uint64_t events;
	uint64_t missed;      /* in gaps */
	uint64_t from_table;  /* buffers whose allocation is not in the recording */
	uint64_t failed_then; /* allocations that failed when they were recorded */
	uint64_t would_fit;   /* of them, those for which there would have been room */
	uint64_t would_fail;  /* of them, those for which there would not */
};

/* 0 or a negative errno; deinit it in any case. */
int replay_walk(struct replay_walk *walk);
void replay_walk_deinit(struct replay_walk *walk);

/* Whether nothing is different from when it was recorded: then addresses should be the same, too. */
bool replay_walk_is_same(const struct replay_walk *walk);

/* Devices with buffers in L1 of another card, whose number of banks depends on how it is opened. */
uint64_t replay_walk_assumed(const struct replay_walk *walk);

/* Of all devices together. */
struct refit_counts replay_walk_counts(const struct replay_walk *walk);

/* Texts of what failed; NULL = none. Valid until the next call. */
const struct stack *replay_walk_stack(const struct replay_walk *walk);
int replay_walk_text(const struct replay_walk *walk, uint32_t id, char *ret_text, size_t size);
