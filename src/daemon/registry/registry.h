/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every process with a book, from the moment the daemon learns of it until it has ended and been
 * judged, that is checked for leaks. Books come from four sources: handed over on the native
 * socket, found under /proc, kept by the daemon itself for clients of the old protocol, and kept by
 * another program, which offers them over a link. A process has ended when its pidfd becomes
 * readable and whoever keeps its book has nothing more to write; the end of a connection is only a
 * reason to check whether the process has executed another program.
 *
 * Lives in the loop's thread, except for registry_books().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/book-id.h"
#include "base/clock.h"
#include "base/process-id.h"
#include "source/books/accept.h"

#define REGISTRY_BOOKS_MAX 16384u

struct loop;
struct registry;
struct book_list;
struct scan_book;
struct tracked;
struct worker;

/* Called in the loop's thread when something happens to a book. */
struct namespaces;

struct registry_hooks {
	void *context;
	void (*added)(void *context, struct tracked *tracked);
	/* Its owner reports a failed allocation. */
	void (*notice)(void *context, struct tracked *tracked);
	/* Its owner has sent the file of its program, as it says; takes the descriptor. */
	void (*program)(void *context, const struct tracked *tracked, int fd);
	/* Its owner has ended (tracked->ending says how). The book is no longer in the list. */
	void (*ended)(void *context, struct tracked *tracked);
	/* Another book continues it, which was added before this; its process has not ended. */
	void (*replaced)(void *context, struct tracked *tracked);
};

/* Implemented by whoever adds a book that the daemon itself keeps. */
struct registry_keeper {
	/*
	 * The owner has ended: process what it still sent. False: there is more, call again.
	 * Afterwards nothing more is written to the book.
	 */
	bool (*drain)(struct registry_keeper *keeper);
	/* The book was judged; the registry no longer refers to the keeper. */
	void (*forget)(struct registry_keeper *keeper);
};

struct registry_config {
	struct loop *loop;
	struct worker *work; /* examines single processes */
	struct worker
		*search_worker; /* does full passes, which take as long as there are descriptors */
	uint32_t scan_s;        /* seconds between two passes over /proc */
	struct registry_hooks hooks;
	/* The first pass over /proc is over: all living processes are known. May be NULL. */
	void (*first_pass)(void *context);
};

int registry_new(struct registry **ret_registry, const struct registry_config *config);
struct registry *registry_free(struct registry *registry);

/* Starts to search for books; restore kept books first. */
int registry_search(struct registry *registry);

/* The /proc that the registry reads. */
const struct proc *registry_proc(const struct registry *registry);

/* The daemon's own namespaces; as long as the registry. */
const struct namespaces *registry_namespaces(const struct registry *registry);

/*
 * Adds a book with a known owner; takes book and pidfd (-1 = not available) in any case. @keeper
 * may be NULL. 0 and @ret_tracked (borrowed, may be NULL); -EEXIST if the same file is known
 * already; or a negative errno.
 */
int registry_add_consume(struct registry *registry, struct scan_book *book, int pid_fd,
			 struct registry_keeper *keeper, struct tracked **ret_tracked);

/* Adds a book that was handed over. Takes the peer with its connection and its book. */
int registry_add_peer_consume(struct registry *registry, struct accept_peer *peer);

#define REGISTRY_PATIENCE_NS (5 * NS_PER_S)

/* A book that another program keeps; whoever asks has checked that it may, and whose book it is. */
struct registry_offer {
	struct scan_book *book; /* with its owner; uid is the owner's */
	int pid_fd;             /* -1 = the owner has ended */
	const void *link;       /* tells one connection from the others */
	struct book_id old;     /* of the book that this one continues; inode 0 = none */
};

/*
 * Adds such a book, or says that a known one is kept by this link now; takes book and pidfd in any case.
 * Its process ends when registry_closed() or registry_unlink() was called, too. The old one goes
 * without having ended. 0, or a negative errno: -EEXIST if the process was judged already.
 */
int registry_keep_consume(struct registry *registry, const struct registry_offer *offer);

/* Its keeper writes nothing more to it. Ignored if this link does not keep it. */
void registry_closed(struct registry *registry, const void *link, struct book_id id);

/*
 * A link is gone. Its program may be restarted, and may have more to write: until it is back, or for
 * REGISTRY_PATIENCE_NS, its processes do not end.
 */
void registry_unlink(struct registry *registry, const void *link);

/* A book that is in the list; NULL = it is not. */
struct tracked *registry_get(const struct registry *registry, struct book_id id);

/* Of such a book: the pidfd of its owner, which is the registry's; -1 = none. */
int registry_pid_fd(const struct registry *registry, const struct tracked *tracked);

/* Whether such a book is kept by nobody any more, or not yet again. */
bool registry_is_left(const struct registry *registry, const struct tracked *tracked);

/* An offer was refused before it got here. */
void registry_count_refused(struct registry *registry);

/*
 * Adds a book that was held while no daemon ran, with what was known of its owner then; takes the
 * fd in any case. If the owner has ended meanwhile, it is judged at once.
 */
int registry_restore_consume(struct registry *registry, int fd, struct process_id process);

/*
 * The process of that book has ended, or runs another program, as somebody says who knows. Nothing if it is not
 * known, or has a keeper.
 */
void registry_end_book(struct registry *registry, struct book_id id);

/* The current list with a reference; from any thread. Never NULL. */
struct book_list *registry_books(struct registry *registry);

struct registry_counts {
	uint64_t processes; /* books of living processes */
	uint64_t refused;   /* books and offers */
	uint64_t ended;
	uint64_t leaked;           /* of the ended ones, those that left buffers */
	uint64_t unobserved_exits; /* processes that ended while nobody held their books */
	uint64_t scans;
	uint64_t scan_ns; /* duration of the last pass */
};

void registry_counts(const struct registry *registry, struct registry_counts *ret_counts);

void registry_count_unobserved(struct registry *registry, uint64_t exits);
