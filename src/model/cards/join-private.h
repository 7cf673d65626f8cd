/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For join.c and join-nodes.c: what is known about all cards, and about one process. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/cards/numbering.h"
#include "model/snapshot.h"

#define JOIN_LOST_MAX 64u /* nodes of one process whose cards nobody knows any more */

struct join {
	struct snapshot *snapshot;
	struct numbering all;     /* cards, as UMD numbers them */
	struct numbering present; /* without those that are gone */
	size_t guessed;           /* processes whose devices another UMD would number differently */
	uint64_t *ids;            /* of each card: ASIC id, serial << 8 | place, or 0 */
	uint32_t *places;         /* of each card on its board */
	uint64_t *taken;    /* of each card without an ASIC id: what a process says, 0 = none */
	uint32_t *taken_by; /* whose process: nobody else is bound by it */
	uint32_t *by_pid;   /* claims of living processes, sorted by pid */
	size_t claim_count;
};

/* What is known about one process. */
struct join_who {
	const struct snapshot_process *process;
	const uint32_t *claims;
	size_t claim_count;
	uint32_t open[SNAPSHOT_CARDS_MAX]; /* cards */
	size_t open_count;
	bool open_known;                  /* there are no others */
	bool used[SNAPSHOT_CARDS_MAX];    /* by card, likewise the next */
	bool removed[SNAPSHOT_CARDS_MAX]; /* the node that it has open was removed since */
	uint32_t lost[JOIN_LOST_MAX];     /* numbers of such nodes, where no card is known */
	size_t lost_count;
	uint32_t nodes[SNAPSHOT_CARDS_MAX + JOIN_LOST_MAX]; /* device n is this card, or none */
	size_t node_count;
	bool is_guess; /* another UMD would have numbered them differently, and which it is is not known */
};

/* The card of a node; SNAPSHOT_NO_CARD if there is none. */
uint32_t join_card_of(const struct join *join, uint64_t number);

/* Collects what sources say about the process. */
void join_learn(const struct join *join, const struct snapshot_process *process,
		struct join_who *ret_who);

/* Whether it has the card open, be it by a node that was removed since. */
bool join_is_open(const struct join_who *who, uint32_t card);

/* Fills in who->nodes. */
void join_number_nodes(const struct join *join, struct join_who *who);

/* Whether @left says which card @process had; then which that is. */
bool join_is_of(const struct snapshot_left *left, const struct snapshot_process *process);
uint32_t join_card_before(const struct join *join, const struct snapshot_left *left);
