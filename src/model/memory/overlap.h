/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Live buffers of two processes at the same place of one device. Each process has an allocator of
 * its own, and nothing keeps two of them from handing out the same memory: then each overwrites
 * what the other stored.
 *
 * Only what is certain is reported: devices that are known to be the same chip, buffers in all
 * banks, and of a buffer whose share of a bank is not known only its beginning. Memory that is
 * shared on purpose is left out, that is aliases and buffers at an address that was passed in. So
 * are circular buffers and kernels: those of programs that are only cached overlap each other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;
struct snapshot_buffer;

#define OVERLAP_BUFFERS_MAX (UINT32_C(1) << 20) /* of shared devices; more are not looked at */
#define OVERLAP_PROCESSES_MAX 64u               /* at one place */
#define OVERLAP_PAIRS_MAX 256u
#define OVERLAP_NOTES_MAX 8u

/* The lowest place where two processes overlap. */
struct overlap {
	uint32_t row;                                 /* index of the device */
	uint64_t address;                             /* in each bank */
	const struct snapshot_buffer *first, *second; /* the older and the younger */
};

struct overlaps {
	struct overlap *list; /* owned; each pair of processes once */
	size_t count;
	bool is_cut; /* there are too many buffers or pairs */
};

#define OVERLAPS_NULL     \
	(struct overlaps) \
	{                 \
		0         \
	}

/* Whether buffers of that type are compared. */
bool overlap_has_type(uint32_t type);

/*
 * How many buffers of living processes would be compared, and a number that changes with them.
 * Needs totals only. 0: no device has buffers of two processes.
 */
uint64_t overlap_count(const struct snapshot *snapshot, uint64_t *ret_signature);

/*
 * For each device, whether it has buffers of several processes that would be compared; owned by the
 * caller. NULL: no memory.
 */
bool *overlap_shared_rows(const struct snapshot *snapshot, bool *ret_any);

/* Compares the buffers of a finished snapshot. 0 or -ENOMEM. */
int overlap_find(const struct snapshot *snapshot, struct overlaps *ret_overlaps);
void overlap_deinit(struct overlaps *overlaps);

/* Finds them and adds notes. 0 or -ENOMEM. */
int overlap_note_all(struct snapshot *snapshot);

/* The notes: about one pair, of which there are at most OVERLAP_NOTES_MAX, and about the rest. */
void overlap_note(struct snapshot *snapshot, uint32_t device, uint32_t first_pid,
		  uint32_t second_pid);
void overlap_note_rest(struct snapshot *snapshot, size_t pairs, bool is_cut);
