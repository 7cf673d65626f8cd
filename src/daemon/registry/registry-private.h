/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the registry share; nobody else includes this. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "source/proc/proc.h"

struct book_search;

struct registry_entry {
	struct registry *registry;
	struct tracked *tracked;
	struct loop_source pid_fd;     /* -1 = there is none: the search looks after it */
	struct loop_source connection; /* -1 = none, or no more */
	struct registry_keeper *keeper;
	uint64_t news_since; /* a second, and how much news came in it */
	uint32_t notice;
};

struct registry_file {
	dev_t device;
	ino_t inode;
};

struct registry {
	struct registry_config config;
	struct proc proc;
	uint64_t since; /* CLOCK_MONOTONIC of its making, which is that of the daemon */
	uint64_t fds_max;
	struct book_search *search;
	struct registry_entry **entries; /* in order of pid and inode */
	size_t count, capacity;

	struct registry_file *judged; /* a ring */
	uint64_t judged_count;
	struct registry_counts counts;

	pthread_mutex_t lock; /* for the roster */
	struct book_list *book_list;
};

/* registry.c */
/* The entry of that file; NULL = there is none. */
struct registry_entry *registry_find(const struct registry *registry, dev_t device, ino_t inode);
/* Whether its owner has ended before, not too long ago. */
bool registry_was_judged(const struct registry *registry, const struct scan_book *book);
/* As registry_add_consume(), for one that is known not to be there. */
int registry_add(struct registry *registry, struct scan_book *book, int pid_fd,
		 struct registry_keeper *keeper, struct registry_entry **ret_entry);
/* A book found no room: it will be looked for again. */
void registry_refuse(struct registry *registry, int r);
/* The owner is no more, or no longer the program that kept the book. */
void registry_end(struct registry_entry *entry, enum tracked_end end);
/* Whether its pidfd says so. */
bool registry_is_over(const struct registry_entry *entry);
