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

/* registry.c */
/* The entry of that file, or NULL. */
struct registry_entry *registry_find(const struct registry *registry, struct book_id id);
/* Whether its owner exited and was judged recently. */
bool registry_was_judged(const struct registry *registry, const struct scan_book *book);
/* Like registry_add_consume(), for a book that is known not to be in the registry. */
int registry_add(struct registry *registry, struct scan_book *book, int pid_fd,
		 struct registry_keeper *keeper, struct registry_entry **ret_entry);
/* There was no room for a book: search for it again. */
void registry_refuse(struct registry *registry, int r);
/* The owner has exited, or no longer runs the program that kept the book. */
void registry_end(struct registry_entry *entry, bool execed);
/* Whether its pidfd says that the process has exited. */
bool registry_is_over(const struct registry_entry *entry);
