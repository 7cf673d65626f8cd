/* SPDX-License-Identifier: Apache-2.0 */

/* A list of files, oldest first, and a thread that adds to it. */

#include "daemon/symbols/symbols-files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/quota.h"
#include "base/threads/pthreads.h"
#include "symbol/mapped-file.h"

#define FILES_JOIN_S 1u

struct files_held {
	uint64_t book;
	uint32_t user;
	uint32_t pid;
	int fd;
	char *path;
};

struct files_task {
	struct files_task *next;
	struct symbols_files_owner owner;
};

struct symbols_files {
	struct symbolizer_holder holder;
	pthread_t thread;

	pthread_mutex_t lock; /* protects what follows; never held while a file is opened */
	pthread_cond_t more, done;
	struct files_task *first, **last;
	uint32_t waiting;
	uint64_t current; /* the book whose files are being opened; 0 = none */
	bool is_released; /* that book, meanwhile */
	bool is_ending;
	uint32_t count;
	struct quota of_users;
	struct files_held held[SYMBOLS_FILES_MAX]; /* oldest first */
};

/* With the lock held. The caller closes the descriptor. */
static int files_take_out(struct symbols_files *files, uint32_t at)
{
	int fd = files->held[at].fd;

	quota_give(&files->of_users, files->held[at].user, 1);
	free(files->held[at].path);
	files->count--;
	memmove(&files->held[at], &files->held[at + 1],
		(files->count - at) * sizeof(files->held[0]));
	return fd;
}

/*
 * Makes room for one file: the oldest of the user, or if there are too many of all users, of one who has
 * the most. Return: a descriptor to be closed, or -1.
 */
static int files_make_room(struct symbols_files *files, uint32_t user)
{
	const struct quota *all = &files->of_users;
	bool is_own = quota_used(all, user) >= all->each;
	uint64_t most = quota_most(all);

	for (uint32_t i = 0; (is_own || all->used >= all->total) && i < files->count; i++) {
		uint32_t other = files->held[i].user;

		if (is_own ? other == user : quota_used(all, other) == most)
			return files_take_out(files, i);
	}
	return -1;
}

/* Whether a file is to be added: it is not there, and the process has room for it. */
static bool files_wants(const struct symbols_files *files, const struct symbols_files_owner *owner,
			const char *path)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < files->count; i++) {
		const struct files_held *held = &files->held[i];

		if (held->book == owner->book && strcmp(held->path, path) == 0)
			return false;
		count += held->user == owner->user && held->pid == owner->process.pid;
	}
	return count < SYMBOLS_FILES_PROCESS_MAX;
}

/* Takes both, or neither and returns false. With the lock held. */
static bool files_add(struct symbols_files *files, const struct symbols_files_owner *owner,
		      char **path, int *fd)
{
	int old;

	if (!files_wants(files, owner, *path))
		return false;
	old = files_make_room(files, owner->user);
	if (old >= 0)
		(void)close(old); /* O_PATH: the file system is not asked */
	if (quota_add(&files->of_users, owner->user, 1) < 0)
		return false;
	files->held[files->count++] = (struct files_held){
		.book = owner->book,
		.user = owner->user,
		.pid = owner->process.pid,
		.fd = cleanup_steal_fd(fd),
		.path = cleanup_steal(*path),
	};
	return true;
}

/* The files of one process, so far. */
struct files_taking {
	struct symbols_files *files;
	const struct symbols_files_owner *owner;
	uint32_t count;
};

static bool files_take(void *context, const char *path, int fd)
{
	struct files_taking *taking = context;
	struct symbols_files *files = taking->files;
	CLEANUP_CLOSE int owned = fd;
	CLEANUP_FREE char *name = strdup(path);
	bool goes_on;

	pthread_mutex_lock(&files->lock);
	goes_on = name && !files->is_ending && !files->is_released;
	if (goes_on) {
		(void)files_add(files, taking->owner, &name, &owned); /* there may be one already */
		goes_on = ++taking->count < SYMBOLS_FILES_PROCESS_MAX;
	}
	pthread_mutex_unlock(&files->lock);
	return goes_on;
}

static void files_serve(struct symbols_files *files, const struct symbols_files_owner *owner)
{
	struct files_taking taking = {.files = files, .owner = owner};

	/* A process that has ended, or that we may not look into, has no files for us. */
	(void)mapped_file_all(owner->process, files_take, &taking);
}

static void *files_thread(void *context)
{
	struct symbols_files *files = context;

	pthread_mutex_lock(&files->lock);
	while (!files->is_ending) {
		struct files_task *task = files->first;

		if (!task) {
			pthread_cond_wait(&files->more, &files->lock);
			continue;
		}
		files->first = task->next;
		if (!files->first)
			files->last = &files->first;
		files->waiting--;
		files->current = task->owner.book;
		files->is_released = false;
		pthread_mutex_unlock(&files->lock);
		files_serve(files, &task->owner);
		free(task);
		pthread_mutex_lock(&files->lock);
		files->current = 0;
		pthread_cond_broadcast(&files->done);
	}
	pthread_mutex_unlock(&files->lock);
	return NULL;
}

void symbols_files_hold(struct symbols_files *files, const struct symbols_files_owner *owner)
{
	struct files_task *task = calloc(1, sizeof(*task));

	if (!task)
		return; /* then names are found as long as the files have theirs */
	task->owner = *owner;
	pthread_mutex_lock(&files->lock);
	if (files->waiting < SYMBOLS_FILES_WAITING_MAX) {
		*files->last = task;
		files->last = &task->next;
		files->waiting++;
		task = NULL;
		pthread_cond_signal(&files->more);
	}
	pthread_mutex_unlock(&files->lock);
	free(task);
}

void symbols_files_hold_consume(struct symbols_files *files,
				const struct symbols_files_owner *owner, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	CLEANUP_FREE char *path = NULL;

	/* Any other descriptor may have side effects, at the latest when it is closed. */
	if ((fcntl(fd, F_GETFL) & O_PATH) == 0)
		return;
	path = mapped_file_name(fd);
	if (!path)
		return;
	pthread_mutex_lock(&files->lock);
	(void)files_add(files, owner, &path, &owned); /* there may be one already */
	pthread_mutex_unlock(&files->lock);
}

/* With the lock held. */
static bool files_is_waiting(const struct symbols_files *files, uint64_t book)
{
	if (files->current == book)
		return true;
	for (const struct files_task *task = files->first; task; task = task->next) {
		if (task->owner.book == book)
			return true;
	}
	return false;
}

static int files_find(struct symbolizer_holder *holder, const struct symbolizer_module *module,
		      int *ret_fd)
{
	struct symbols_files *files = container_of(holder, struct symbols_files, holder);
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + SYMBOLS_FILES_PATIENCE_MS * NS_PER_MS;
	int r = -ENOENT;

	pthread_mutex_lock(&files->lock);
	while (files_is_waiting(files, module->book) &&
	       pthreads_wait(&files->done, &files->lock, until))
		;
	for (uint32_t i = 0; r < 0 && i < files->count; i++) {
		const struct files_held *held = &files->held[i];

		if (held->book != module->book || strcmp(held->path, module->path) != 0)
			continue;
		*ret_fd = fcntl(held->fd, F_DUPFD_CLOEXEC, 0);
		r = *ret_fd < 0 ? -errno : 0;
	}
	pthread_mutex_unlock(&files->lock);
	return r;
}

static void files_forget_task(struct symbols_files *files, uint64_t book)
{
	struct files_task **at = &files->first;

	while (*at) {
		struct files_task *task = *at;

		if (task->owner.book != book) {
			at = &task->next;
			continue;
		}
		*at = task->next;
		files->waiting--;
		free(task);
	}
	files->last = at;
}

void symbols_files_release(struct symbols_files *files, uint64_t book)
{
	int fds[SYMBOLS_FILES_PROCESS_MAX];
	uint32_t count = 0;

	pthread_mutex_lock(&files->lock);
	files_forget_task(files, book);
	files->is_released = files->is_released || files->current == book;
	for (uint32_t i = 0; i < files->count && count < SYMBOLS_FILES_PROCESS_MAX;) {
		if (files->held[i].book == book)
			fds[count++] = files_take_out(files, i);
		else
			i++;
	}
	pthread_mutex_unlock(&files->lock);
	while (count > 0)
		(void)close(fds[--count]); /* O_PATH: the file system is not asked */
}

struct symbolizer_holder *symbols_files_holder(struct symbols_files *files)
{
	return &files->holder;
}

uint32_t symbols_files_count(struct symbols_files *files)
{
	uint32_t count;

	pthread_mutex_lock(&files->lock);
	count = files->count;
	pthread_mutex_unlock(&files->lock);
	return count;
}

int symbols_files_new(struct symbols_files **ret_files)
{
	CLEANUP_FREE struct symbols_files *files = calloc(1, sizeof(*files));
	struct rlimit limit;
	int r;

	if (!files)
		return -ENOMEM;
	files->holder.find = files_find;
	files->last = &files->first;
	files->of_users =
		(struct quota){.total = SYMBOLS_FILES_MAX, .each = SYMBOLS_FILES_USER_MAX};
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		files->of_users.total =
			bits_max(1, bits_min(SYMBOLS_FILES_MAX, limit.rlim_cur / 8));
	pthreads_init(&files->lock, &files->more);
	pthreads_init_condition(&files->done);
	r = pthreads_start(&files->thread, "files", files_thread, files);
	if (r < 0)
		return r;
	*ret_files = cleanup_steal(files);
	return 0;
}

struct symbols_files *symbols_files_free(struct symbols_files *files)
{
	if (!files)
		return NULL;
	pthread_mutex_lock(&files->lock);
	files->is_ending = true;
	pthread_cond_broadcast(&files->more);
	pthread_mutex_unlock(&files->lock);
	if (!pthreads_join(files->thread, clock_ns(CLOCK_MONOTONIC) + FILES_JOIN_S * NS_PER_S)) {
		/* The thread is blocked on a file: leave it what it uses. */
		(void)pthread_detach(files->thread);
		return NULL;
	}
	while (files->count > 0)
		(void)close(files_take_out(files, files->count - 1)); /* as above */
	while (files->first)
		files_forget_task(files, files->first->owner.book);
	pthread_cond_destroy(&files->done);
	pthread_cond_destroy(&files->more);
	pthread_mutex_destroy(&files->lock);
	quota_deinit(&files->of_users);
	free(files);
	return NULL;
}
