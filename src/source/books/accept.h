/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Taking in books that are handed over (wire/offer.h). Who the sender is comes from the socket and from
 * a pidfd, never from the message; what it sends is checked like any other book. A sender that does
 * anything wrong loses its connection, and nobody else anything.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/books/scan.h"
#include "source/proc/proc.h"
#include "wire/native.h"

/* Why an offer is refused; positive results of accept_receive() below these are genuine_outcomes. */
enum accept_outcome {
	ACCEPT_BAD_MESSAGE = 101,
	ACCEPT_NO_BOOK = 102,       /* not a book, or one of a later version */
	ACCEPT_NOT_THE_OWNER = 103, /* the book is another process's */
	ACCEPT_CLOSED = 104,        /* it has hung up, and nothing had come */
	ACCEPT_REQUEST = 105,       /* no offer but a question, native or HTTP, and no refusal */
};

/* A packet that is meant as a question; nothing in it has been checked but its first four bytes. */
struct accept_request {
	size_t length;
	uint8_t bytes[NATIVE_REQUEST_MAX];
};

/* Somebody who has connected and may have handed over a book. */
struct accept_peer {
	int fd;     /* the connection, not blocking */
	int pid_fd; /* readable when the process has ended; -1 if there is none to be had */
	uint32_t pid;
	uint32_t uid;
	struct scan_book *book; /* NULL until it has come */
};

/* A listening socket at @path, which must not exist. A negative errno, or an fd. */
int accept_listen(const char *path);

/* The next who wants in: -EAGAIN if there is nobody. The peer owns what it holds. */
int accept_peer_new(int listening, struct accept_peer **ret_peer);
struct accept_peer *accept_peer_free(struct accept_peer *peer);

/*
 * Receives the offer. 0 and peer->book is there, -EAGAIN if nothing has come yet, another negative
 * errno, or why it is refused: a verify_book_outcome, an accept_outcome. In every case but the first two the
 * peer is of no more use.
 */
int accept_receive(struct accept_peer *peer, const struct proc *proc);

/* The same, but a question is no mistake: ACCEPT_REQUEST, and the peer may be received from again. */
int accept_receive_any(struct accept_peer *peer, const struct proc *proc,
		       struct accept_request *ret_request);

/*
 * After the offer: 0 if an allocation of the sender's has failed just now, -EAGAIN if nothing has come,
 * another negative errno if the connection has ended, -EPIPE among them.
 */
int accept_news(int fd);

const char *accept_strerror(int result);
