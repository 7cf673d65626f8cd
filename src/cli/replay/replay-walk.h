/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A recording's events, replayed on another card until one of them fails there. Each device of each
 * process is one chip of that card, with an allocator of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "model/memory/refit.h"
#include "recording/read/recording.h"

struct scan_book;
struct stack;
struct stacks;

/* Would it have run? */
enum replay_verdict {
	REPLAY_RUNS = 0,
	REPLAY_FAILS = 1,
	REPLAY_NOT_KNOWN = 2, /* nothing could be judged */
};

/* One device of one process. */
struct replay_device {
	uint32_t book;
	uint32_t device;
	uint32_t pid;
	const char *comm;
	const char *card; /* that it was recorded on; NULL = not known */
	const struct recording_facts *facts;
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
	const struct replay_device *owner;
	uint64_t time_ns;          /* CLOCK_REALTIME */
	uint64_t at_ns;            /* since the start of the recording */
	uint64_t number;           /* of the event */
	bool is_from_table;        /* it was there when the recording began, or after a gap */
	const char *name, *phase;  /* NULL = none */
	const struct stack *stack; /* likewise; the book's */
	struct refit_buffer buffer;
	struct refit_failure failure;
};

struct replay_walk {
	struct recording *recording; /* borrowed; likewise the next */
	const char *card_name;       /* NULL = as it was recorded */
	struct refit_card card;
	uint32_t fit; /* enum free_list_fit */

	struct replay_book *books; /* owned */
	struct replay_device *devices;
	size_t count, capacity;
	size_t last; /* index of the device that was found last */
	struct pool texts;
	bool has_failed;
	struct replay_failed failed;

	uint64_t events;
	uint64_t missed;      /* in gaps */
	uint64_t from_table;  /* buffers whose allocation is not in the recording */
	uint64_t failed_then; /* allocations that failed when they were recorded */
	uint64_t would_fit;   /* of them, those for which there would have been room */
	uint64_t would_fail;  /* of them, those for which there would not */

	/* Once it has ended: */
	const struct recording_facts *facts;
	uint32_t verdict; /* enum replay_verdict */
	/* Nothing is different from when it was recorded: then addresses should be the same, too. */
	bool is_same;
	bool is_closed_loop; /* never: what the program asked for is taken as it was recorded */
	/* Devices with buffers in L1 of another card, whose banks depend on how it is opened. */
	uint64_t assumed;
	struct refit_counts counts; /* of all devices together */
};

/* 0 or a negative errno; deinit it in any case. */
int replay_walk(struct replay_walk *walk);
void replay_walk_deinit(struct replay_walk *walk);
