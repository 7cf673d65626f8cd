/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A book only ever gains stacks, so new ones begin where the last visit ended. A visit notes
 * unknown addresses under the book's lock and resolves them without it.
 */

#include "daemon/symbols/symbols-learner.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "daemon/symbols/symbols-namer.h"
#include "source/books/stacks.h"

struct symbols_learner {
	struct symbols_learner_config config;
	struct worker *work;
	struct loop_timer timer;
	struct worker_job turn;
	size_t at; /* in the list of tracked books: where the next turn begins */
};

/* Resolves new addresses of a book, with at most @max queries. Return: the number of queries. */
static size_t learner_visit(struct symbols_learner *learner, struct tracked *tracked, size_t max)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer;
	CLEANUP(pool_deinit) struct pool texts = POOL_NULL;
	uint32_t before = tracked->stacks_seen;

	symbols_namer_init(&namer, learner->config.symbols, false);
	pthread_mutex_lock(&tracked->book_lock);
	/* Stacks that cannot be read have no names. */
	(void)stacks_tour(tracked->book, &namer.namer, &texts, SYMBOLS_LEARNER_STACKS,
			  &tracked->stacks_seen);
	pthread_mutex_unlock(&tracked->book_lock);
	(void)symbols_namer_learn(&namer, max); /* only fills the cache */
	/* Addresses that were not reached in time are visited again. */
	if (namer.count > 0)
		tracked->stacks_seen = before;
	return namer.asked;
}

static void learner_run(struct worker_job *job)
{
	struct symbols_learner *learner = container_of(job, struct symbols_learner, turn);
	struct book_list *book_list = registry_books(learner->config.registry);
	size_t asked = 0, start = learner->at;
	uint32_t user = 0;

	/* Begins at the first book that the last turn did not reach, and visits each once. */
	for (size_t i = 0; i < book_list->count; i++) {
		size_t at = (start + i) % book_list->count;
		struct tracked *tracked = book_list->list[at];

		if (asked >= SYMBOLS_LEARNER_QUESTIONS || (asked > 0 && tracked->maker != user)) {
			learner->at = at;
			break;
		}
		asked += learner_visit(learner, tracked, SYMBOLS_LEARNER_QUESTIONS - asked);
		user = tracked->maker;
	}
	book_list_unref(book_list);
}

static void learner_done(struct worker_job *job)
{
	struct symbols_learner *learner = container_of(job, struct symbols_learner, turn);

	/* Without memory for a timer learning stops, and names are resolved on demand. */
	(void)loop_set(learner->config.loop, &learner->timer,
		       loop_now(learner->config.loop) + SYMBOLS_LEARNER_S * NS_PER_S);
}

static void learner_timer(struct loop_timer *timer)
{
	struct symbols_learner *learner = container_of(timer, struct symbols_learner, timer);

	(void)worker_put(learner->work, &learner->turn); /* the queue is unbounded */
}

int symbols_learner_new(struct symbols_learner **ret_learner,
			const struct symbols_learner_config *config)
{
	CLEANUP_FREE struct symbols_learner *learner = calloc(1, sizeof(*learner));
	int r;

	if (!learner)
		return -ENOMEM;
	learner->config = *config;
	learner->timer.fire = learner_timer;
	learner->turn = (struct worker_job){.run = learner_run, .done = learner_done};
	r = worker_new(&learner->work,
		       &(struct worker_config){.name = "names", .loop = config->loop});
	if (r < 0)
		return r;
	r = loop_set(config->loop, &learner->timer, loop_now(config->loop));
	if (r < 0) {
		worker_free(learner->work);
		return r;
	}
	*ret_learner = cleanup_steal(learner);
	return 0;
}

struct symbols_learner *symbols_learner_free(struct symbols_learner *learner)
{
	if (!learner)
		return NULL;
	worker_free(learner->work);
	loop_cancel(learner->config.loop, &learner->timer); /* after: a turn sets it when done */
	free(learner);
	return NULL;
}
