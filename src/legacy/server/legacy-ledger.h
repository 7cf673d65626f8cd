/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the next daemon must know of each connection of an old client, in a memory file that outlives
 * this one: keeper or systemd hold it. It is written while the daemon works, so a daemon that is killed
 * leaves it as complete as one that stops.
 *
 * Bytes that were taken out of a socket are always in here until they have had their effect:
 *
 *	the journal	one read, of the connection whose number it has; the position tells which
 *			messages were applied
 *	the spill	of each connection: what is left of a read that could not be finished, because
 *			a question must be answered first, or there was no memory for a book
 *
 * A kill is never in the middle of a system call that does not wait: what recv() has taken is in the
 * journal. Stores are seen in the order of the program; LEGACY_LEDGER_ORDER() keeps the compiler to it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "legacy/server/legacy-server.h"

#define LEGACY_READ_SIZE 65536u /* per read, and per connection and turn */

#define LEGACY_LEDGER_ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

enum legacy_answering {
	LEGACY_ANSWERING_NOT = 0,
	LEGACY_ANSWERING_NOW = 1,  /* the question was taken, and one send() will answer it */
	LEGACY_ANSWERING_PART = 2, /* a part was sent */
};

struct legacy_slot {
	uint64_t inode;                  /* of the socket; 0 = free */
	uint64_t start_ticks;            /* of the peer; 0 = not known */
	uint32_t ns_pid;                 /* the peer's pid in its own namespace */
	uint32_t dialect;                /* enum legacy_dialect */
	uint32_t spill_begin, spill_end; /* end 0 = none */
	uint32_t spill_room;             /* bytes that are reserved */
	uint32_t answering;              /* enum legacy_answering */
	uint32_t reserved[6];
};

_Static_assert(sizeof(struct legacy_slot) == 64, "slot size");

struct legacy_ledger {
	/* These stay as they are: a daemon of another version needs the listener all the same. */
	uint64_t magic;
	uint64_t listener_device, listener_inode; /* as its path shows it; 0 = none of its own */

	uint64_t size;    /* of this struct */
	uint32_t version; /* of what follows */

	uint32_t applying; /* 1 = in the middle of a message */

	/* The journal. */
	uint32_t owner;    /* 1 + index of a slot; 0 = it is empty */
	uint32_t wanted;   /* bytes */
	uint32_t length;   /* the same once they are there */
	uint32_t position; /* of the first message that was not applied */
	uint32_t reserved[2];

	struct legacy_slot slots[LEGACY_CONNECTIONS_MAX];
	uint8_t journal[LEGACY_READ_SIZE] __attribute__((aligned(4096)));
	uint8_t spills[LEGACY_CONNECTIONS_MAX][LEGACY_READ_SIZE]; /* sparse */
};

/* A new one. 0 or a negative errno. */
int legacy_ledger_new(struct legacy_ledger **ret_ledger, int *ret_fd);

/* The listener of another daemon, of any version. 0 or -EBADMSG. */
int legacy_ledger_listener(int fd, uint64_t *ret_device, uint64_t *ret_inode);

/* The one of another daemon; the caller keeps the fd. -EBADMSG if it is not ours to read. */
int legacy_ledger_open(struct legacy_ledger **ret_ledger, int fd);
void legacy_ledger_close(struct legacy_ledger *ledger);

/* Keeps bytes in the slot's spill, which is empty. 0 or -ENOSPC. */
int legacy_ledger_spill(struct legacy_ledger *ledger, int fd, struct legacy_slot *slot,
			const uint8_t *bytes, uint32_t length);
uint8_t *legacy_ledger_spilled(struct legacy_ledger *ledger, const struct legacy_slot *slot);

/* The spill is empty again. @all: give its memory back. */
void legacy_ledger_unspill(struct legacy_ledger *ledger, int fd, struct legacy_slot *slot,
			   bool all);
