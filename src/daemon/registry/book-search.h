/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Looking for books that nobody handed over, and after processes that cannot tell of their end: all of
 * /proc at the start, then regularly the processes that were not there before, and now and then all of
 * them again, because a process may have begun with its book after it was looked at. Runs in a worker.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct proc;
struct scan_book;
struct book_search;
struct tracked;
struct worker;

/* What was found out about a process that was to be looked at again. */
enum book_search_verdict {
	BOOK_SEARCH_LIVES = 0,
	BOOK_SEARCH_OVER = 1,
	BOOK_SEARCH_EXECED = 2,
};

/* Called in the loop's thread. */
struct book_search_hooks {
	void *context;
	/* A book; to be taken, with its owner's pidfd (-1 = it has ended, or there is none). */
	void (*found)(void *context, struct scan_book *book, int pid_fd);
	void (*judged)(void *context, struct tracked *tracked, enum book_search_verdict verdict);
	/* A pass is over. */
	void (*passed)(void *context, uint64_t took_ns, size_t refused);
	/*
	 * Processes that have no connection whose end would tell, or (@all) everybody: at most @max
	 * of them, each counted for the search.
	 */
	size_t (*doubtful)(void *context, bool all, struct tracked **ret_list, size_t max);
};

struct book_search_config {
	struct loop *loop;
	struct worker *work;   /* for passes */
	struct worker *doubts; /* for single processes; must not wait for a pass */
	uint32_t interval_s;
	struct book_search_hooks hooks;
};

/* Begins with a full pass at once. */
int book_search_new(struct book_search **ret_search, const struct book_search_config *config);

/* The work must have been freed before: then nothing of the search is running any more. */
struct book_search *book_search_free(struct book_search *search);

/* Looks at one process soon: its connection has ended. */
void book_search_doubt(struct book_search *search, struct tracked *tracked);

/* Looks at everybody once more in a second: a book was found and could not be taken. */
void book_search_again(struct book_search *search);

/* The descriptor of a process, if it still is the one that started then; -1 otherwise. */
int book_search_pid_fd(const struct proc *proc, uint32_t pid, uint64_t start_ticks);
