/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every process with a book, from the moment that the daemon learns of it until it has ended and been
 * judged. Books come from three sides: handed over on the native socket, found under /proc, and kept by
 * the daemon itself for clients of the old protocol. The end of a process is its pidfd becoming
 * readable; the end of a connection is merely a reason to look whether the process has become another
 * program.
 *
 * Lives in the loop's thread, but for registry_roster().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/books/accept.h"

#define REGISTRY_BOOKS_MAX 16384u

struct loop;
struct registry;
struct book_list;
struct scan_book;
struct tracked;
struct worker;

/* What others do when something happens to a book. All are called in the loop's thread. */
struct registry_hooks {
	void *context;
	void (*added)(void *context, struct tracked *tracked);
	/* Its owner says that an allocation has failed. */
	void (*notice)(void *context, struct tracked *tracked);
	/* Its owner has ended (tracked->end says how). No longer in the roster. */
	void (*ended)(void *context, struct tracked *tracked);
};

/* Of one book, by whoever added it: for those that are kept by the daemon itself. */
struct registry_keeper {
	/*
	 * The owner has ended: take in what it still said. False: there is more, call again.
	 * Afterwards nothing more is written into the book.
	 */
	bool (*drain)(struct registry_keeper *keeper);
	/* It was judged; the keeper is no longer referred to. */
	void (*forget)(struct registry_keeper *keeper);
};

struct registry_config {
	struct loop *loop;
	struct worker *work; /* for a look at one process */
	struct worker
		*scout;  /* for looks at everybody, which take as long as there are descriptors */
	uint32_t scan_s; /* seconds between two looks at /proc */
	struct registry_hooks hooks;
	/* The first look at /proc is over: everybody who lives is known. May be NULL. */
	void (*first_pass)(void *context);
	/*
	 * A book that was kept for a living client of the old protocol has come back: takes book and
	 * pidfd. May be NULL: then nobody goes on with it.
	 */
	int (*adopt)(void *context, struct scan_book *book, int pid_fd);
};

int registry_new(struct registry **ret_registry, const struct registry_config *config);
struct registry *registry_free(struct registry *registry);

/* Begins to look for books; before that, those that were kept have been restored. */
int registry_search(struct registry *registry);

/* The /proc that the registry looks at. */
const struct proc *registry_proc(const struct registry *registry);

/*
 * Adds a book with a known owner; takes book and pidfd (-1 = none to be had) in any case. @keeper may be
 * NULL. 0 and @ret_tracked (only lent, may be NULL); -EEXIST if the same file is known already; or a
 * negative errno.
 */
int registry_add_consume(struct registry *registry, struct scan_book *book, int pid_fd,
			 struct registry_keeper *keeper, struct tracked **ret_tracked);

/* A book that was handed over. Takes the peer, its connection and its book. */
int registry_add_peer_consume(struct registry *registry, struct accept_peer *peer);

/*
 * A book that somebody held while no daemon ran, with what was known of its owner then; takes the fd in
 * any case. If the owner has ended meanwhile it is judged at once.
 */
int registry_restore_consume(struct registry *registry, int fd, uint32_t pid, uint64_t start_ticks);

/* The current list, counted; from any thread. Never NULL. */
struct book_list *registry_roster(struct registry *registry);

struct registry_counts {
	uint64_t processes; /* books of living ones */
	uint64_t refused;   /* books and offers */
	uint64_t ended;
	uint64_t leaked;           /* of them with something left */
	uint64_t unobserved_exits; /* processes that ended while nobody held their books */
	uint64_t scans;
	uint64_t scan_ns; /* of the last one */
};

void registry_counts(const struct registry *registry, struct registry_counts *ret_counts);

/* Processes that ended while nobody held their books. */
void registry_count_unobserved(struct registry *registry, uint64_t exits);
