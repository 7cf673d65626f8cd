/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A single job does the passes over /proc, so only one runs at a time; each process in doubt has a
 * job of its own. The scan runs in the worker's thread; what it finds is passed to the loop as a
 * list.
 */

#include "daemon/registry/book-search.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/registry/tracked.h"
#include "source/books/scan.h"
#include "source/host/kernel.h"

#define BOOK_SEARCH_FULL_EVERY 10u /* passes */
#define BOOK_SEARCH_DOUBTFUL_MAX 16384u

struct book_search_found {
	struct scan_book *book;
	int pid_fd;
};

struct book_search {
	struct book_search_config config;
	struct loop_timer timer;
	struct worker_job pass;
	uint64_t passes; /* started */
	bool wants_all;  /* the next pass is a full one */

	/* Owned by the pass while it runs. */
	struct scan *scan;
	struct map seen, now; /* processes that were examined, by pid and start */
	struct book_search_found *found;
	size_t found_count, found_capacity;
	struct tracked **doubtful;
	uint8_t *verdicts;
	size_t doubtful_count;
	uint64_t took_ns;
	bool is_full;
	bool again; /* something was missed: the next pass is a full one */
};

/* A process in doubt. */
struct book_search_doubt {
	struct worker_job job;
	struct book_search *search;
	struct tracked *tracked;
	enum book_search_verdict verdict;
};

static bool book_search_wants(void *context, uint32_t pid)
{
	struct book_search *search = context;
	uint64_t start_ticks = proc_start_ticks(&search->scan->proc, pid);
	uint32_t number;

	if (start_ticks == 0)
		return false;
	(void)map_add(&search->now, pid, start_ticks, &number); /* else it is examined again */
	return search->is_full || !map_find(&search->seen, pid, start_ticks);
}

/* A process that exited since it was found must not stay "alive" until the next pass. */
static struct book_search_found book_search_settle(const struct proc *proc, struct scan_book *book)
{
	struct book_search_found found = {.book = book, .pid_fd = -1};

	if (!book->alive)
		return found;
	found.pid_fd = proc_pid_fd(proc, book->owner.id);
	if (found.pid_fd < 0)
		book->alive = !proc_has_ended(proc, book->owner.id);
	return found;
}

static void book_search_collect_found(struct book_search *search)
{
	struct scan *scan = search->scan;
	struct book_search_found *found;

	while (scan->count > 0) {
		struct scan_book *book = scan_release(scan, scan->count - 1);

		if (book->gone || book->reader.header.unlisted) {
			scan_book_free(book);
			continue;
		}
		found = array_grow(search->found, &search->found_capacity, search->found_count + 1,
				   sizeof(*found));
		if (!found) {
			search->again = true;
			scan_book_free(book);
			continue;
		}
		search->found = found;
		found[search->found_count++] = book_search_settle(&scan->proc, book);
	}
}

/* Whether a process has exited or executed another program, according to /proc. */
static enum book_search_verdict book_search_judge(const struct proc *proc,
						  const struct tracked *tracked)
{
	const struct proc_file file = {.device = tracked->id.device, .inode = tracked->id.inode};

	if (proc_has_ended(proc, tracked->process))
		return BOOK_SEARCH_OVER;
	/* The daemon itself maps the books of old clients, not the process. */
	if (tracked->source == BOOK_SOURCE_SOCKET)
		return BOOK_SEARCH_LIVES;
	return proc_has_mapped(proc, tracked->process.pid, &file, MAPS_BUDGET_ONE, NULL) == 0
		       ? BOOK_SEARCH_EXECED
		       : BOOK_SEARCH_LIVES;
}

static void book_search_pass_run(struct worker_job *job)
{
	struct book_search *search = container_of(job, struct book_search, pass);
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	/* Only a full pass has seen everything that can also be found in other ways. */
	if (scan_run(search->scan) < 0 || search->scan->starved ||
	    (search->is_full && kernel_attach_books(search->scan) < 0))
		search->again = true;
	book_search_collect_found(search);
	map_deinit(&search->seen);
	search->seen = search->now;
	search->now = MAP_NULL;
	for (size_t i = 0; i < search->doubtful_count; i++)
		search->verdicts[i] =
			(uint8_t)book_search_judge(&search->scan->proc, search->doubtful[i]);
	search->took_ns = clock_ns(CLOCK_MONOTONIC) - start;
}

static void book_search_pass_done(struct worker_job *job)
{
	struct book_search *search = container_of(job, struct book_search, pass);
	const struct book_search_hooks *hooks = &search->config.hooks;

	for (size_t i = 0; i < search->found_count; i++)
		hooks->found(hooks->context, search->found[i].book, search->found[i].pid_fd);
	search->found_count = 0;
	for (size_t i = 0; i < search->doubtful_count; i++) {
		hooks->judged(hooks->context, search->doubtful[i], search->verdicts[i]);
		tracked_unref(search->doubtful[i]);
	}
	search->doubtful_count = 0;
	hooks->passed(hooks->context, search->took_ns, search->scan->refused_count);
	/*
	 * Without memory for a timer there is no next pass; books that are handed over still
	 * arrive.
	 */
	(void)loop_set(search->config.loop, &search->timer,
		       loop_now(search->config.loop) + (search->again || search->wants_all
								? 1
								: search->config.interval_s) *
							       NS_PER_S);
}

static void book_search_begin(struct book_search *search)
{
	const struct book_search_hooks *hooks = &search->config.hooks;

	search->is_full =
		search->again || search->wants_all || search->passes % BOOK_SEARCH_FULL_EVERY == 0;
	search->again = false;
	search->wants_all = false;
	search->passes++;
	search->doubtful_count = hooks->doubtful(hooks->context, search->is_full, search->doubtful,
						 BOOK_SEARCH_DOUBTFUL_MAX);
	(void)worker_put(search->config.work, &search->pass); /* the queue is unbounded */
}

static void book_search_timer(struct loop_timer *timer)
{
	book_search_begin(container_of(timer, struct book_search, timer));
}

int book_search_new(struct book_search **ret_search, const struct book_search_config *config)
{
	struct book_search *search = calloc(1, sizeof(*search));
	int r = search ? 0 : -ENOMEM;

	if (!search)
		return r;
	search->config = *config;
	search->timer.fire = book_search_timer;
	search->pass.run = book_search_pass_run;
	search->pass.done = book_search_pass_done;
	search->doubtful = calloc(BOOK_SEARCH_DOUBTFUL_MAX, sizeof(struct tracked *));
	search->verdicts = calloc(BOOK_SEARCH_DOUBTFUL_MAX, 1);
	if (!search->doubtful || !search->verdicts)
		r = -ENOMEM;
	if (r == 0)
		r = scan_new(&search->scan);
	if (r < 0) {
		book_search_free(search);
		return r;
	}
	search->scan->wants = book_search_wants;
	search->scan->context = search;
	*ret_search = search;
	book_search_begin(search);
	return 0;
}

struct book_search *book_search_free(struct book_search *search)
{
	if (!search)
		return NULL;
	loop_cancel(search->config.loop, &search->timer);
	scan_free(search->scan);
	free(search->found);
	free(search->doubtful);
	free(search->verdicts);
	map_deinit(&search->seen);
	map_deinit(&search->now);
	free(search);
	return NULL;
}

static void book_search_doubt_run(struct worker_job *job)
{
	struct book_search_doubt *doubt = container_of(job, struct book_search_doubt, job);

	doubt->verdict = book_search_judge(&doubt->search->scan->proc, doubt->tracked);
}

static void book_search_doubt_done(struct worker_job *job)
{
	struct book_search_doubt *doubt = container_of(job, struct book_search_doubt, job);
	const struct book_search_hooks *hooks = &doubt->search->config.hooks;

	hooks->judged(hooks->context, doubt->tracked, doubt->verdict);
	tracked_unref(doubt->tracked);
	free(doubt);
}

void book_search_again(struct book_search *search)
{
	struct loop *loop = search->config.loop;
	uint64_t soon = loop_now(loop) + NS_PER_S;

	search->wants_all = true;
	/* A running pass sets the timer when it ends. */
	if (search->timer.place != 0 && search->timer.due_ns > soon)
		(void)loop_set(loop, &search->timer, soon); /* cannot fail: already set */
}

void book_search_doubt(struct book_search *search, struct tracked *tracked)
{
	struct book_search_doubt *doubt = calloc(1, sizeof(*doubt));

	if (!doubt)
		return; /* the next pass examines it */
	*doubt = (struct book_search_doubt){
		.job = {.run = book_search_doubt_run, .done = book_search_doubt_done},
		.search = search,
		.tracked = tracked_ref(tracked),
	};
	(void)worker_put(search->config.doubts, &doubt->job); /* the queue is unbounded */
}
