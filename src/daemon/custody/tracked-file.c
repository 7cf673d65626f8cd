/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes the file of tracked processes. The loop only copies the set into a job; the worker formats
 * it and replaces the file. One job at a time: what changes while it runs is in the next.
 */

#include "daemon/custody/tracked-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/heir.h"
#include "base/text.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/custody/tracked-file-text.h"

#define TRACKED_FILE_PAUSE_NS (NS_PER_S / 10) /* between two writes */

/* One write; owned by the worker while it runs. */
struct tracked_file_job {
	struct worker_job work;
	struct tracked_file *tracked_file; /* NULL: freed meanwhile. For the loop only. */
	char *folder;
	char boot[TRACKED_FILE_BOOT_SIZE];
	struct tracked_file_entry *entries;
	size_t count, capacity;
	uint64_t missed;
	int result;
};

struct tracked_file {
	struct loop *loop;
	struct worker *work;
	struct tracked_file_hooks hooks;
	struct loop_timer timer;
	char *folder;
	char boot[TRACKED_FILE_BOOT_SIZE];
	uint64_t missed;
	bool is_changed;
	bool has_failed;                  /* and that has been reported */
	struct tracked_file_job *filling; /* only while the hook lists */
	struct tracked_file_job *running;
};

static void tracked_file_job_free(struct tracked_file_job *job)
{
	free(job->folder);
	free(job->entries);
	free(job);
}

static void tracked_file_job_print(const struct tracked_file_job *job, FILE *file)
{
	fprintf(file, TRACKED_FILE_TEXT_HEADING "\n" TRACKED_FILE_TEXT_BOOT "%s\n", job->boot);
	if (job->missed > 0)
		fprintf(file, TRACKED_FILE_TEXT_MISSED "%" PRIu64 "\n", job->missed);
	for (size_t i = 0; i < job->count; i++) {
		const struct tracked_file_entry *entry = &job->entries[i];
		char clean[TEXT_CLEAN_SIZE(TRACKED_FILE_COMM_SIZE)], comm[TRACKED_FILE_COMM_SIZE];

		(void)text_clean(entry->comm, strnlen(entry->comm, sizeof(entry->comm)), clean);
		(void)text_escape(clean, comm, sizeof(comm)); /* truncated if too long */
		fprintf(file, "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
			entry->process.pid, entry->process.start_ticks, entry->book.device,
			entry->book.inode, comm);
	}
	fprintf(file, TRACKED_FILE_TEXT_END "%zu\n", job->count);
}

static int tracked_file_job_write(const struct tracked_file_job *job)
{
	CLEANUP_FREE char *path = NULL, *temporary = NULL;
	CLEANUP_FCLOSE FILE *file = NULL;
	int fd, r = 0;

	if (asprintf(&path, "%s/%s", job->folder, TRACKED_FILE_FILE) < 0)
		return -ENOMEM;
	if (asprintf(&temporary, "%s.new", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	/* Remove a temporary file that a killed daemon left; never follow anything else there. */
	(void)unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	(void)heir_give(fd, path); /* on failure its user cannot read it, and says so */
	file = fdopen(fd, "we");
	if (!file) {
		r = -errno;
		(void)close(fd); /* nothing was written to it */
		return r;
	}
	errno = 0;
	tracked_file_job_print(job, file);
	if (fflush(file) != 0 || ferror(file) || rename(temporary, path) < 0)
		r = errno ? -errno : -EIO;
	if (r < 0)
		(void)unlink(temporary); /* incomplete */
	return r;
}

static void tracked_file_job_run(struct worker_job *work)
{
	struct tracked_file_job *job = container_of(work, struct tracked_file_job, work);

	job->result = tracked_file_job_write(job);
}

static void tracked_file_job_done(struct worker_job *work)
{
	struct tracked_file_job *job = container_of(work, struct tracked_file_job, work);
	struct tracked_file *tracked_file = job->tracked_file;
	int result = job->result;

	tracked_file_job_free(job);
	if (!tracked_file)
		return;
	tracked_file->running = NULL;
	if (result < 0 && !tracked_file->has_failed && tracked_file->hooks.failed)
		tracked_file->hooks.failed(tracked_file->hooks.context, result);
	tracked_file->has_failed = result < 0;
	if (tracked_file->hooks.written)
		tracked_file->hooks.written(tracked_file->hooks.context);
	/* Without memory for the timer: written at the next change. */
	(void)loop_set(tracked_file->loop, &tracked_file->timer,
		       loop_now(tracked_file->loop) + TRACKED_FILE_PAUSE_NS);
}

/* Lists the set and starts a job that writes it. */
static void tracked_file_write(struct tracked_file *tracked_file)
{
	struct tracked_file_job *job = calloc(1, sizeof(*job));

	if (job)
		job->folder = strdup(tracked_file->folder);
	if (!job || !job->folder) {
		free(job);
		return; /* no memory: written at the next change */
	}
	job->work.run = tracked_file_job_run;
	job->work.done = tracked_file_job_done;
	job->tracked_file = tracked_file;
	memcpy(job->boot, tracked_file->boot, sizeof(job->boot));
	job->missed = tracked_file->missed;
	tracked_file->is_changed = false;
	tracked_file->filling = job;
	tracked_file->hooks.list(tracked_file->hooks.context, tracked_file);
	tracked_file->filling = NULL;
	tracked_file->running = job;
	(void)worker_put(tracked_file->work, &job->work); /* the queue is unbounded */
}

static void tracked_file_fire(struct loop_timer *timer)
{
	struct tracked_file *tracked_file = container_of(timer, struct tracked_file, timer);

	if (tracked_file->is_changed && !tracked_file->running)
		tracked_file_write(tracked_file);
}

int tracked_file_new(struct tracked_file **ret_file, struct loop *loop, struct worker *work,
		     const char *folder, const struct tracked_file_hooks *hooks)
{
	CLEANUP_FREE struct tracked_file *tracked_file = calloc(1, sizeof(*tracked_file));
	int r;

	if (!tracked_file)
		return -ENOMEM;
	r = tracked_file_boot(tracked_file->boot);
	if (r < 0)
		return r;
	tracked_file->folder = strdup(folder);
	if (!tracked_file->folder)
		return -ENOMEM;
	tracked_file->loop = loop;
	tracked_file->work = work;
	tracked_file->hooks = *hooks;
	tracked_file->timer.fire = tracked_file_fire;
	*ret_file = cleanup_steal(tracked_file);
	return 0;
}

struct tracked_file *tracked_file_free(struct tracked_file *tracked_file)
{
	if (!tracked_file)
		return NULL;
	/* Jobs run in order, so this one follows a running one. */
	if (tracked_file->running)
		tracked_file->running->tracked_file = NULL;
	if (tracked_file->is_changed) {
		tracked_file->running = NULL;
		tracked_file_write(tracked_file);
		if (tracked_file->running)
			tracked_file->running->tracked_file = NULL;
	}
	loop_cancel(tracked_file->loop, &tracked_file->timer);
	free(tracked_file->folder);
	free(tracked_file);
	return NULL;
}

void tracked_file_changed(struct tracked_file *tracked_file)
{
	tracked_file->is_changed = true;
	/*
	 * The first change after a pause is written at the end of this turn, together with others
	 * of the turn; during the pause the timer is already set.
	 */
	if (!tracked_file->running && tracked_file->timer.place == 0)
		(void)loop_set(tracked_file->loop, &tracked_file->timer,
			       loop_now(tracked_file->loop)); /* on failure: at the next change */
}

void tracked_file_set_missed(struct tracked_file *tracked_file, uint64_t missed)
{
	tracked_file->missed = missed;
	tracked_file_changed(tracked_file);
}

void tracked_file_put(struct tracked_file *tracked_file, const struct tracked_file_entry *entry)
{
	struct tracked_file_job *job = tracked_file->filling;
	struct tracked_file_entry *grown;

	if (job->count == TRACKED_FILE_ENTRIES_MAX)
		return;
	grown = array_grow(job->entries, &job->capacity, job->count + 1, sizeof(*entry));
	if (!grown)
		return; /* no memory: if it exits unobserved, it is not counted */
	job->entries = grown;
	job->entries[job->count++] = *entry;
}
