/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by nodes.c, which reads files of processes, and nodes-ask.c, which queries the daemon. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct nodes_reader;
struct nodes_teller;

/* The driver's claims, and which of them are in doubt. */
struct nodes_openers {
	uint32_t *claims; /* sorted by pid */
	size_t count;
	bool *doubted; /* by claim */
	bool *unread;  /* by claim: the files of its process cannot be read */
	size_t claim_count;
	bool held[SNAPSHOT_CARDS_MAX]; /* by card: one has it that the driver does not list */
	bool is_complete;              /* every process was searched */
	bool has_unread;
};

/* Adds that a process has a card open, of which only that is known. Returns 0 or -ENOMEM. */
int nodes_claim(struct nodes_reader *nodes, const struct snapshot_process *process, size_t card);

/* The card of an opener's claim; NULL if it is not there any more. */
struct snapshot_card *nodes_card_of(struct snapshot *snapshot, const struct snapshot_claim *claim,
				    size_t *ret_index);

/* Corrects what our own reading left open. Returns 0 or -ENOMEM; 0 also if nothing is told. */
int nodes_ask(struct nodes_reader *nodes, const struct nodes_teller *teller,
	      struct nodes_openers *openers);
