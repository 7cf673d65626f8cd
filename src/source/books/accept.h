/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Accepts books that are handed over (wire/offer.h). The sender's identity comes from the socket
 * and from a pidfd, never from the message; what it sends is checked like any other book. A sender
 * that does anything wrong loses its connection and affects nobody else.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "source/books/scan.h"
#include "source/proc/proc.h"
#include "wire/native.h"

/*
 * Why an offer is refused. Smaller positive results of accept_receive() are verify_book_outcomes.
 */
enum accept_outcome {
	ACCEPT_BAD_MESSAGE = 101,
	ACCEPT_NO_BOOK = 102,       /* not a book, or one of a later version */
	ACCEPT_NOT_THE_OWNER = 103, /* the book belongs to another process */
	ACCEPT_CLOSED = 104,        /* the peer hung up without sending anything */
	ACCEPT_REQUEST = 105,       /* not an offer but a request, native or HTTP; not a refusal */
	ACCEPT_LINK = 106, /* the beginning of a link (wire/link.h); not a refusal either */
};

/* A packet that looks like a request, of which only the first four bytes have been checked; or a LINK_HELLO. */
struct accept_request {
	size_t length;
	uint8_t bytes[NATIVE_REQUEST_MAX];
};

/* A peer that has connected and may have handed over a book. */
struct accept_peer {
	int fd;     /* the connection, non-blocking */
	int pid_fd; /* readable when the process has exited; -1 if unavailable */
	uint32_t pid;
	uint32_t uid;
	struct scan_book *book; /* NULL until it has arrived */
};

/* Listens at @path, which must not exist. Returns an fd or a negative errno. */
int accept_listen(const char *path);

/* Accepts the next connection; -EAGAIN if there is none. The peer owns what it holds. */
int accept_peer_new(int listening, struct accept_peer **ret_peer);
struct accept_peer *accept_peer_free(struct accept_peer *peer);

/* For CLEANUP(). */
static inline void accept_peer_cleanup(struct accept_peer **peer)
{
	accept_peer_free(*peer);
}

/*
 * Receives the offer. Returns 0 and sets peer->book; -EAGAIN if nothing has arrived yet; another
 * negative errno; or why the offer is refused: a verify_book_outcome or an accept_outcome. In all
 * but the first two cases the peer is of no further use.
 */
int accept_receive(struct accept_peer *peer, const struct proc *proc);

/*
 * The same, but a request is no error: returns ACCEPT_REQUEST or ACCEPT_LINK, and the peer may be received
 * from again.
 */
int accept_receive_any(struct accept_peer *peer, const struct proc *proc,
		       struct accept_request *ret_request);

/*
 * After the offer: 0 if an allocation of the sender has just failed, or with @ret_program, which the
 * caller then owns, the file that the sender calls its program (-1 = none); -EAGAIN if nothing has
 * arrived, another negative errno (such as -EPIPE) if the connection has ended.
 */
int accept_news(int fd, int *ret_program);

const char *accept_strerror(int result);
