/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between a daemon and its keeper: of one size, on a SOCK_SEQPACKET socket, with at
 * most one file descriptor each. docs/protocol-keeper.md describes them byte by byte.
 *
 * The two sides may be of different versions, because a keeper outlives the daemon that started it,
 * even across an update. So these messages do not change; additions are new kinds, and a side that
 * does not know a kind closes the connection.
 */

#include <stdbool.h>
#include <stdint.h>

#define KEEPER_WIRE_MAGIC UINT32_C(0x504b5454) /* "TTKP" */
#define KEEPER_WIRE_VERSION 1u
#define KEEPER_WIRE_COMM 64

enum keeper_wire_kind {
	/* To the keeper. */
	KEEPER_WIRE_ADD = 1,    /* hold this book; with its fd */
	KEEPER_WIRE_REMOVE = 2, /* release this book: only device and inode count */
	KEEPER_WIRE_TAKE = 3,   /* send all held books; they stay held */
	KEEPER_WIRE_SWEEP = 4,  /* release what was not added on this connection */
	KEEPER_WIRE_QUIT = 5,   /* release all books and exit */
	/* To the daemon. */
	KEEPER_WIRE_HELD = 6, /* one held book; with its fd */
	KEEPER_WIRE_END = 7,  /* end of the held books, or of the others */

	/* Added later. Descriptors other than books: "source" says what they are to the daemon. */
	KEEPER_WIRE_HOLD = 8,   /* to the keeper: hold this one; with its fd */
	KEEPER_WIRE_FETCH = 9,  /* to the keeper: send all of these; they stay held */
	KEEPER_WIRE_OTHER = 10, /* to the daemon: one of these; with its fd */
};

struct keeper_wire {
	uint32_t magic;
	uint32_t version;
	uint32_t size; /* of this struct */
	uint32_t kind;

	/* Of a book: ADD, REMOVE, HELD. HOLD and OTHER have source, device and inode. Else 0. */
	uint32_t pid;
	uint32_t source; /* enum book_source */
	uint64_t start_ticks;
	uint64_t device;
	uint64_t inode;
	char comm[KEEPER_WIRE_COMM]; /* any bytes, terminated and padded with NUL */

	/* In END; else 0. */
	uint64_t held;
	uint64_t refused; /* number of ADDs since the keeper started */
};

_Static_assert(sizeof(struct keeper_wire) == 128, "keeper message size");
_Static_assert(_Alignof(struct keeper_wire) == 8, "keeper message alignment");

#define KEEPER_WIRE_INIT(what)                                              \
	(struct keeper_wire)                                                \
	{                                                                   \
		.magic = KEEPER_WIRE_MAGIC, .version = KEEPER_WIRE_VERSION, \
		.size = sizeof(struct keeper_wire), .kind = (what),         \
	}

/* Whether the bytes are a message of this protocol, with or without an fd as its kind requires. */
bool keeper_wire_is_valid(const struct keeper_wire *message, bool has_fd);

/*
 * Sends without blocking. @fd may be -1 and stays the caller's. 0; -EAGAIN if the socket is full;
 * -ETOOMANYREFS if too many descriptors are in flight, which epoll does not report as over: try
 * again later; or another negative errno: the connection is unusable.
 */
int keeper_wire_send(int socket, const struct keeper_wire *message, int fd);

/*
 * Receives without blocking. 0, and the caller owns @ret_fd (-1 = none); -EAGAIN; -EPIPE at the end
 * of the connection, after all data sent before it; -EMFILE if there is no room for its descriptor
 * (the next message may succeed); -EBADMSG for an invalid message; or another negative errno.
 */
int keeper_wire_receive(int socket, struct keeper_wire *ret_message, int *ret_fd);

/*
 * Whether the fd matches the message; a book must be a read-only file, others a file or a socket.
 */
bool keeper_wire_fits(const struct keeper_wire *message, int fd);

/* Whether the peer of a connection is our user or root. */
bool keeper_wire_is_friend(int socket);
