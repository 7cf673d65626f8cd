/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the parts of the registry; private to it. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/book-id.h"
#include "base/threads/loop.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "source/proc/proc.h"

struct book_search;

struct registry_entry {
	struct registry *registry;
	struct tracked *tracked;
	struct loop_source pid_fd;     /* -1 = none: the search checks the process */
	struct loop_source connection; /* -1 = none, or closed */
	struct registry_keeper *keeper;

	/* Of a book that another program keeps, see registry-kept.c. */
	bool is_closed;             /* by the keeper: nothing more is written to it */
	bool is_over;               /* its process has ended; the keeper may still have something */
	struct loop_timer patience; /* set: a keeper may come back */

	uint64_t notices_since; /* start of the current second, for the rate limit of notices */
	uint32_t notices;

	/* Private to registry-exits.c. */
	uint64_t exits_lost;  /* the registry's when it was added */
	struct ending told;   /* its first thread has exited: */
	bool exit_is_unclear; /* but that may not be the status of the process */
};

struct registry {
	struct registry_config config;
	struct proc proc;
	struct namespaces namespaces;
	uint64_t since; /* proc_monotonic_ns() when it was created: when the daemon started */
	uint64_t fds_max;
	struct book_search *search;
	struct registry_entry **entries; /* in order of pid and inode */
	size_t count, capacity;

	struct loop_source exits; /* the process connector; -1 = none */
	uint64_t exits_lost;      /* how often some of its messages were lost */

	struct book_id *judged; /* a ring */
	uint64_t judged_count;
	struct registry_counts counts;

	pthread_mutex_t lock; /* protects book_list */
	struct book_list *book_list;
};

/* What registry_add() makes an entry of; it takes the first two in any case. */
struct registry_newcomer {
	struct scan_book *book;
	int pid_fd; /* -1 = not available */
	struct registry_keeper *keeper;
	const void *link;
	struct registry_entry *old; /* which it takes the place of; NULL = none */
};

/* registry.c */
/* The entry of that file, or NULL. */
struct registry_entry *registry_find(const struct registry *registry, struct book_id id);
/* Whether its owner exited and was judged recently. */
bool registry_was_judged(const struct registry *registry, struct book_id id);
/* Like registry_add_consume(), for a book that is known not to be in the registry. */
int registry_add(struct registry *registry, const struct registry_newcomer *what,
		 struct registry_entry **ret_entry);
/* Watches a pidfd, which it takes. */
void registry_watch_pid(struct registry_entry *entry, int pid_fd);
/* How its process ended, while that can be told. */
void registry_read_exit(struct registry_entry *entry);
/* There was no room for a book: search for it again. */
void registry_refuse(struct registry *registry, int r);
/* The owner has exited, or no longer runs the program that kept the book. */
void registry_end(struct registry_entry *entry, bool execed);
/* Whether its pidfd says that the process has exited. */
bool registry_is_over(const struct registry_entry *entry);

/* registry-kept.c */
/* Whether another program writes the book, or the daemon itself: its process does not have it. */
bool registry_is_kept(const struct registry_entry *entry);
/* The process has exited: the end, unless its keeper may still have something. */
void registry_over(struct registry_entry *entry);
/* Its process has exited, and was kept a book when the last daemon ended: waits for the keeper. */
void registry_await_keeper(struct registry_entry *entry);
