/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A queue and the thread that serves it. A query is shared by the caller and the thread: the caller
 * may time out while the thread is still blocked on the file.
 */

#include "daemon/symbols/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/symbols/symbols-files.h"
#include "symbol/symbolizer-memory.h"
#include "symbol/symbolizer.h"

#define SYMBOLS_JOIN_S 5u      /* a thread that is blocked for longer is detached */
#define SYMBOLS_PATH_MAX 4096u /* bytes; no file has a longer name */

struct symbols_question {
	struct symbols_question *next;
	uint32_t refs; /* under the lock, like the next two */
	bool is_done;
	int result;
	struct symbolizer_module module; /* its path is stored below */
	uint64_t address;
	struct symbolizer_answer answer;
	char path[];
};

struct symbols {
	struct symbols_config config;
	struct symbolizer *symbolizer; /* driven by the thread */
	struct symbols_files *files;   /* used by the thread */
	struct symbolizer_memory memory;
	pthread_t thread;
	int stop_fd;

	pthread_mutex_t lock; /* protects what follows */
	pthread_cond_t more, done;
	struct symbols_question *first, **last;
	size_t waiting;
	bool is_ending;
	uint64_t asked;
};

static struct timespec symbols_time(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
}

/* With the lock held. */
static void symbols_unref(struct symbols_question *question)
{
	if (--question->refs == 0)
		free(question);
}

/* With the lock held. NULL: the queue is empty. */
static struct symbols_question *symbols_take(struct symbols *symbols)
{
	struct symbols_question *question = symbols->first;

	if (!question)
		return NULL;
	symbols->first = question->next;
	if (!symbols->first)
		symbols->last = &symbols->first;
	symbols->waiting--;
	return question;
}

/* With the lock held. NULL: shutdown. */
static struct symbols_question *symbols_next(struct symbols *symbols)
{
	uint32_t idle = symbols->config.idle_s ? symbols->config.idle_s : SYMBOLS_IDLE_S;
	struct timespec until = symbols_time(clock_ns(CLOCK_MONOTONIC) + idle * NS_PER_S);
	bool is_idle = false;

	while (!symbols->first && !symbols->is_ending) {
		if (is_idle)
			pthread_cond_wait(&symbols->more, &symbols->lock);
		else if (pthread_cond_clockwait(&symbols->more, &symbols->lock, CLOCK_MONOTONIC,
						&until) == ETIMEDOUT) {
			is_idle = true;
			pthread_mutex_unlock(&symbols->lock);
			symbolizer_rest(symbols->symbolizer);
			pthread_mutex_lock(&symbols->lock);
		}
	}
	return symbols->is_ending ? NULL : symbols_take(symbols);
}

static void symbols_serve(struct symbols *symbols, struct symbols_question *question)
{
	int r = -ETIMEDOUT;

	/* Skip the file if the caller has timed out. */
	if (question->refs > 1) {
		pthread_mutex_unlock(&symbols->lock);
		r = symbolizer_find(symbols->symbolizer, &question->module, question->address,
				    &question->answer);
		pthread_mutex_lock(&symbols->lock);
	}
	question->result = r;
	question->is_done = true;
	pthread_cond_broadcast(&symbols->done);
	symbols_unref(question);
}

static void *symbols_thread(void *context)
{
	struct symbols *symbols = context;
	struct symbols_question *question;

	(void)pthread_setname_np(pthread_self(), "symbols"); /* for people only */
	pthread_mutex_lock(&symbols->lock);
	while ((question = symbols_next(symbols)))
		symbols_serve(symbols, question);
	while ((question = symbols_take(symbols)))
		symbols_unref(question);
	pthread_mutex_unlock(&symbols->lock);
	symbolizer_rest(symbols->symbolizer);
	return NULL;
}

static int symbols_start(struct symbols *symbols)
{
	sigset_t all, before;
	int r;

	/* Signals are handled by the loop. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&symbols->thread, NULL, symbols_thread, symbols);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int symbols_new(struct symbols **ret_symbols, const struct symbols_config *config)
{
	CLEANUP_FREE struct symbols *symbols = calloc(1, sizeof(*symbols));
	CLEANUP_CLOSE int stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int r;

	if (!symbols)
		return -ENOMEM;
	if (stop_fd < 0)
		return -errno;
	symbols->config = *config;
	symbols->config.symbolizer.stop_fd = stop_fd;
	symbols->last = &symbols->first;
	symbols->stop_fd = stop_fd;
	(void)pthread_mutex_init(&symbols->lock,
				 NULL); /* cannot fail on Linux; nor can the next two */
	(void)pthread_cond_init(&symbols->more, NULL);
	(void)pthread_cond_init(&symbols->done, NULL);
	r = symbols_files_new(&symbols->files);
	if (r < 0)
		return r;
	symbols->config.symbolizer.holder = symbols_files_holder(symbols->files);
	r = symbolizer_new(&symbols->symbolizer, &symbols->config.symbolizer);
	symbolizer_memory_init(&symbols->memory);
	if (r == 0)
		r = symbols_start(symbols);
	if (r < 0) {
		symbolizer_memory_deinit(&symbols->memory);
		symbolizer_free(symbols->symbolizer);
		symbols_files_free(symbols->files);
		return r;
	}
	(void)cleanup_steal_fd(&stop_fd); /* the thread uses it */
	*ret_symbols = cleanup_steal(symbols);
	return 0;
}

struct symbols *symbols_free(struct symbols *symbols)
{
	static const uint64_t one = 1;
	struct timespec until;

	if (!symbols)
		return NULL;
	pthread_mutex_lock(&symbols->lock);
	symbols->is_ending = true;
	pthread_cond_broadcast(&symbols->more);
	pthread_mutex_unlock(&symbols->lock);
	(void)!write(symbols->stop_fd, &one, sizeof(one)); /* cannot fail: the counter is 0 */
	until = symbols_time(clock_ns(CLOCK_MONOTONIC) + SYMBOLS_JOIN_S * NS_PER_S);
	if (pthread_clockjoin_np(symbols->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
		/* The thread is blocked on a file: leave it what it uses. */
		(void)pthread_detach(symbols->thread);
		return NULL;
	}
	symbolizer_memory_deinit(&symbols->memory);
	symbolizer_free(symbols->symbolizer);
	symbols_files_free(symbols->files);
	pthread_cond_destroy(&symbols->done);
	pthread_cond_destroy(&symbols->more);
	pthread_mutex_destroy(&symbols->lock);
	(void)close(symbols->stop_fd); /* an eventfd: nothing can be lost */
	free(symbols);
	return NULL;
}

static struct symbols_question *symbols_question_new(const struct symbolizer_module *module,
						     uint64_t address)
{
	size_t length = strlen(module->path);
	struct symbols_question *question = calloc(1, sizeof(*question) + length + 1);

	if (!question)
		return NULL;
	question->refs = 2;
	question->address = address;
	question->module = *module;
	question->module.path = question->path;
	memcpy(question->path, module->path, length);
	return question;
}

int symbols_resolve(struct symbols *symbols, const struct symbolizer_module *module,
		    uint64_t address, int timeout_ms, struct symbolizer_answer *ret_answer)
{
	struct timespec until =
		symbols_time(clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * (NS_PER_S / 1000));
	struct symbols_question *question;
	int r = 0;

	if (strnlen(module->path, SYMBOLS_PATH_MAX) == SYMBOLS_PATH_MAX)
		return -ENAMETOOLONG;
	question = symbols_question_new(module, address);
	if (!question)
		return -ENOMEM;
	pthread_mutex_lock(&symbols->lock);
	symbols->asked++;
	if (symbols->is_ending || symbols->waiting >= SYMBOLS_WAITING_MAX) {
		pthread_mutex_unlock(&symbols->lock);
		free(question);
		return -EBUSY;
	}
	*symbols->last = question;
	symbols->last = &question->next;
	symbols->waiting++;
	pthread_cond_signal(&symbols->more);
	while (!question->is_done && r != ETIMEDOUT)
		r = pthread_cond_clockwait(&symbols->done, &symbols->lock, CLOCK_MONOTONIC, &until);
	r = question->is_done ? question->result : -ETIMEDOUT;
	if (r == 0)
		*ret_answer = question->answer;
	symbols_unref(question);
	pthread_mutex_unlock(&symbols->lock);
	symbolizer_memory_put(&symbols->memory, module, address, r, ret_answer);
	return r;
}

int symbols_recall(struct symbols *symbols, const struct symbolizer_module *module,
		   uint64_t address, struct symbolizer_answer *ret_answer)
{
	return symbolizer_memory_find(&symbols->memory, module, address, ret_answer);
}

void symbols_hold(struct symbols *symbols, const struct symbols_files_owner *owner)
{
	symbols_files_hold(symbols->files, owner);
}

void symbols_hold_consume(struct symbols *symbols, const struct symbols_files_owner *owner, int fd)
{
	symbols_files_hold_consume(symbols->files, owner, fd);
}

void symbols_release(struct symbols *symbols, uint64_t book)
{
	symbols_files_release(symbols->files, book);
}

void symbols_counts(struct symbols *symbols, struct symbols_counts *ret_counts)
{
	struct symbolizer_counts counts;

	symbolizer_counts(symbols->symbolizer, &counts);
	*ret_counts = (struct symbols_counts){
		.cached = counts.cached,
		.started = counts.started,
		.lost = counts.lost,
		.held = symbols_files_count(symbols->files),
	};
	pthread_mutex_lock(&symbols->lock);
	ret_counts->asked = symbols->asked;
	pthread_mutex_unlock(&symbols->lock);
}
