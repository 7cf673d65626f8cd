/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a daemon and its keeper say to each other: messages of one size on a SOCK_SEQPACKET socket, with
 * at most one file descriptor each. docs/protocol-keeper.md tells it byte by byte.
 *
 * The two may be of different versions: a keeper outlives the daemon that started it, an update
 * included. So these messages do not change; what is added is a new kind, and a side that does not know
 * a kind hangs up.
 */

#include <stdbool.h>
#include <stdint.h>

#define KEEPER_WIRE_MAGIC UINT32_C(0x504b5454) /* "TTKP" */
#define KEEPER_WIRE_VERSION 1u
#define KEEPER_WIRE_COMM 64

enum keeper_wire_kind {
	/* To the keeper. */
	KEEPER_WIRE_ADD = 1,    /* hold this book; with its fd */
	KEEPER_WIRE_REMOVE = 2, /* let this book go: only device and inode count */
	KEEPER_WIRE_TAKE = 3,   /* give me what you hold; it stays held */
	KEEPER_WIRE_SWEEP = 4,  /* let go what was not added on this connection */
	KEEPER_WIRE_QUIT = 5,   /* let all go and end */
	/* To the daemon. */
	KEEPER_WIRE_HELD = 6, /* one of them; with its fd */
	KEEPER_WIRE_END = 7,  /* that was all */
};

struct keeper_wire {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of this struct */
	uint32_t kind;

	/* Of a book: ADD, REMOVE, HELD; else 0. */
	uint32_t pid;
	uint32_t source; /* enum book_source */
	uint64_t start_ticks;
	uint64_t device;
	uint64_t inode;
	char comm[KEEPER_WIRE_COMM]; /* any bytes, a NUL among them; 0 behind it */

	/* In END; else 0. */
	uint64_t held;
	uint64_t refused; /* ADDs since the keeper started */
};

_Static_assert(sizeof(struct keeper_wire) == 128, "keeper message size");
_Static_assert(_Alignof(struct keeper_wire) == 8, "keeper message alignment");

#define KEEPER_WIRE_INIT(what)                                              \
	(struct keeper_wire)                                                \
	{                                                                   \
		.magic = KEEPER_WIRE_MAGIC, .version = KEEPER_WIRE_VERSION, \
		.size = sizeof(struct keeper_wire), .kind = (what),         \
	}

/* Whether the bytes are a message of this protocol, with an fd or without as its kind has it. */
bool keeper_wire_is_valid(const struct keeper_wire *message, bool has_fd);

/*
 * Sends without waiting. @fd may be -1 and stays the caller's. 0; -EAGAIN if the socket is full;
 * -ETOOMANYREFS if too many descriptors are on their way, for which no socket becomes writable: try
 * again later; or another negative errno: the connection is of no more use.
 */
int keeper_wire_send(int socket, const struct keeper_wire *message, int fd);

/*
 * Receives without waiting. 0, and @ret_fd is the caller's (-1 = none came); -EAGAIN; -EPIPE at the end
 * of the connection, when all that was sent before it has been received; -EMFILE if we
 * have no room for its descriptor, and the next message may be better; -EBADMSG for what is no message of
 * ours; or another negative errno.
 */
int keeper_wire_receive(int socket, struct keeper_wire *ret_message, int *ret_fd);

/* Whether a book's fd is what the message says, and can only be read. */
bool keeper_wire_fits(const struct keeper_wire *message, int fd);

/* Whether the other side of a connection is our user, or root. */
bool keeper_wire_is_friend(int socket);
