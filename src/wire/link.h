/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Between ttmemd and a program that keeps books for processes that cannot keep one themselves
 * (ttmem-legacy, for clients of the old allocation server). One connection to the native socket, on which
 * both ends send packets at any time; the first one is LINK_HELLO. Whoever keeps books offers each with a
 * pidfd of its process, and says when nothing more will be written to it: such a process has ended only when
 * both its pidfd and the keeper, or the end of the connection, say so. In return it may ask to be told of the
 * books that ttmemd knows.
 *
 * The identity of a process comes from its pidfd and from /proc, never from the book. What an offer says about
 * it is used only for a process that nobody can ask any more, and only from root or ttmemd's own user.
 *
 * Everything is in the machine's byte order, because both ends run on it. docs/protocol.md has it byte by byte.
 */

#include <stddef.h>
#include <stdint.h>

#define LINK_MAGIC UINT32_C(0x4b4c5454) /* "TTLK" */
#define LINK_VERSION 1u
#define LINK_PACKET_MAX 65536u
#define LINK_FDS_MAX 2u

enum link_kind {
	/* From the keeper. */
	LINK_HELLO = 1, /* struct link_hello; again, if it wants more */
	LINK_OFFER =
		2, /* struct link_offer, with the book and a pidfd (without one: it has ended) */
	LINK_CLOSED = 3, /* struct link_book: nothing more is written to it */
	LINK_SYNC = 4,   /* struct link_sync */
	LINK_STATE = 5,  /* struct link_state, when it has changed; at most once a second */
	LINK_REPORT =
		6, /* struct link_sync, then a part of the report; without text: that was all */
	/* From ttmemd. */
	LINK_BOOK = 16,  /* struct link_process, with the book and, if there is one, a pidfd */
	LINK_ENDED = 17, /* struct link_book: its process has ended, or runs another program */
	LINK_LINES = 18, /* struct link_book, then text for the log, about that process */
	LINK_SYNCED =
		19, /* struct link_sync: everything that was known when it was sent has been told */
	LINK_ASK =
		21, /* struct link_sync: for the report of remaining buffers, with their history */
	LINK_STOP = 20, /* ttmemd is stopped: a program that a ttmemd has started ends, too */
};

/* Begins each packet. */
struct link_head {
	uint32_t magic;
	uint32_t version;
	uint32_t kind; /* enum link_kind */
	uint32_t size; /* of the packet, with this */
};

#define LINK_WANT_BOOKS (UINT32_C(1) << 0) /* LINK_BOOK, LINK_ENDED: those that its user may see */
#define LINK_WANT_LINES \
	(UINT32_C(1) << 1) /* LINK_LINES: it prints them. Only root and our own user */
#define LINK_WANT_ALL UINT32_C(3)

struct link_hello {
	struct link_head head;
	uint32_t want; /* LINK_WANT_... */
	uint32_t reserved;
};

struct link_book {
	struct link_head head;
	uint64_t device, inode; /* of its file */
};

struct link_offer {
	struct link_head head;
	/* Of a book that this one continues, and whose process has therefore not ended; 0 = none. */
	uint64_t old_device, old_inode;
	/* As the kernel told when the process connected; see above. */
	uint64_t start_ticks; /* 0 = not known */
	uint32_t pid;
	uint32_t user;
};

struct link_sync {
	struct link_head head;
	uint64_t number; /* any */
};

#define LINK_IS_LEFT (UINT32_C(1) << 0) /* it was kept over a link that is gone: to be continued */

/* LINK_BOOK: as in struct native_process. */
struct link_process {
	struct link_head head;
	uint64_t device, inode;
	uint64_t start_ticks;
	uint64_t pid_namespace;
	uint32_t pid;
	uint32_t ns_pid;
	uint32_t user;   /* real one */
	uint32_t maker;  /* who made the book */
	uint32_t source; /* enum book_source */
	uint32_t flags;  /* LINK_IS_... */
	char comm[64];
	char container[72];
};

/* What the program has to say about itself, for /metrics, "ttmem status" and "ttmem doctor". */
struct link_state {
	struct link_head head;
	uint64_t connections;
	uint64_t clients;
	uint64_t memory; /* bytes of the books that it keeps */
	uint64_t accepted;
	uint64_t messages;
	uint64_t questions;
	uint64_t taken_over;
	uint64_t in_doubt;
	uint64_t refused; /* messages */
	uint64_t refused_room;
	uint64_t accept_pauses;
	uint64_t connections_refused;
	uint64_t connections_slow;
	uint64_t log_left_out; /* messages and dumps of users who caused too many */
	int32_t status;        /* of its socket: 0 = it listens, or a negative errno */
	uint32_t holder;       /* the process that has the socket instead; 0 = not known */
	uint32_t holder_user;  /* of what is at the path instead, and what that is: */
	uint32_t holder_kind;  /* enum socket_lock_kind */
	uint32_t has_history;  /* 1 = LINK_ASK is answered with the history of each buffer */
	uint32_t reserved;
	char path[112]; /* of the socket */
};

_Static_assert(sizeof(struct link_head) == 16, "head size");
_Static_assert(sizeof(struct link_hello) == 24, "hello size");
_Static_assert(sizeof(struct link_book) == 32, "book size");
_Static_assert(sizeof(struct link_offer) == 48, "offer size");
_Static_assert(sizeof(struct link_sync) == 24, "sync size");
_Static_assert(sizeof(struct link_process) == 208, "process size");
_Static_assert(sizeof(struct link_state) == 264, "state size");

/* Fills the head; @size is that of the whole packet. */
void link_head_init(struct link_head *head, enum link_kind kind, size_t size);

/*
 * The kind of a packet of @length bytes, if its head and its size are right for that kind; kinds that are
 * not known here are returned as they are. -EPROTONOSUPPORT for another version; -EBADMSG.
 */
int link_check(const void *bytes, size_t length);
