/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Searches for books that were not handed over, and checks processes whose exit is not signalled to
 * us: all of /proc at the start, then at intervals the processes that are new, and every few passes
 * all of them again, because a process may create its book after it was examined. Runs in a worker.
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

/* Result of examining a process again. */
enum book_search_verdict {
	BOOK_SEARCH_LIVES = 0,
	BOOK_SEARCH_OVER = 1,
	BOOK_SEARCH_EXECED = 2,
};

/* Called in the loop's thread. */
struct book_search_hooks {
	void *context;
	/*
	 * A book; the callee takes it and its owner's pidfd (-1 = exited, or pidfds are not
	 * available).
	 */
	void (*found)(void *context, struct scan_book *book, int pid_fd);
	void (*judged)(void *context, struct tracked *tracked, enum book_search_verdict verdict);
	/* A pass has ended. */
	void (*passed)(void *context, uint64_t took_ns, size_t refused);
	/*
	 * Processes without a connection whose end would tell us, or (@all) all processes: at most
	 * @max, with a reference each that the search drops.
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

/* Starts a full pass at once. */
int book_search_new(struct book_search **ret_search, const struct book_search_config *config);

/* The workers must have been freed first, so that none of the search's jobs is running. */
struct book_search *book_search_free(struct book_search *search);

/* Examines one process soon, because its connection has ended. */
void book_search_doubt(struct book_search *search, struct tracked *tracked);

/* Starts a full pass in a second, because a book was found that could not be added. */
void book_search_again(struct book_search *search);
