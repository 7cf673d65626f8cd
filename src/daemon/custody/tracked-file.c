/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writing the roll. The loop only copies the set into a job; the worker makes text of it and puts the file
 * in place. One job at a time: what changes while it runs is in the next.
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
#include "base/loop.h"
#include "base/text.h"
#include "base/worker.h"
#include "daemon/custody/tracked-file-text.h"

#define ROLL_PAUSE_NS NS_PER_S /* between two times of writing */

/* One time of writing; belongs to the worker while it runs. */
struct roll_job {
	struct worker_job work;
	struct roll *roll; /* NULL: it was freed meanwhile. Only for the loop. */
	char *folder;
	char boot[ROLL_BOOT_SIZE];
	struct roll_entry *entries;
	size_t count, capacity;
	int result;
};

struct roll {
	struct loop *loop;
	struct worker *work;
	struct roll_hooks hooks;
	struct loop_timer timer;
	char *folder;
	char boot[ROLL_BOOT_SIZE];
	bool is_changed;
	bool has_failed;          /* and that has been told */
	struct roll_job *filling; /* only while the hook lists */
	struct roll_job *running;
};

static void roll_job_free(struct roll_job *job)
{
	free(job->folder);
	free(job->entries);
	free(job);
}

static void roll_job_print(const struct roll_job *job, FILE *file)
{
	fprintf(file, ROLL_TEXT_HEADING "\n" ROLL_TEXT_BOOT "%s\n", job->boot);
	for (size_t i = 0; i < job->count; i++) {
		const struct roll_entry *entry = &job->entries[i];
		char clean[TEXT_CLEAN_SIZE(ROLL_COMM_SIZE)], comm[ROLL_COMM_SIZE];

		(void)text_clean(entry->comm, strnlen(entry->comm, sizeof(entry->comm)), clean);
		(void)text_escape(clean, comm, sizeof(comm)); /* cut if need be */
		fprintf(file, "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", entry->pid,
			entry->start_ticks, entry->device, entry->inode, comm);
	}
	fprintf(file, ROLL_TEXT_END "%zu\n", job->count);
}

static int roll_job_write(const struct roll_job *job)
{
	CLEANUP_FREE char *path = NULL, *temporary = NULL;
	CLEANUP_FCLOSE FILE *file = NULL;
	int fd, r = 0;

	if (asprintf(&path, "%s/%s", job->folder, ROLL_FILE) < 0)
		return -ENOMEM;
	if (asprintf(&temporary, "%s.new", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	/* One that was left half done is ours; anything else at its place is not followed. */
	(void)unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	file = fdopen(fd, "we");
	if (!file) {
		r = -errno;
		(void)close(fd); /* nothing was written to it */
		return r;
	}
	errno = 0;
	roll_job_print(job, file);
	if (fflush(file) != 0 || ferror(file) || rename(temporary, path) < 0)
		r = errno ? -errno : -EIO;
	if (r < 0)
		(void)unlink(temporary); /* of no use to anybody */
	return r;
}

static void roll_job_run(struct worker_job *work)
{
	struct roll_job *job = container_of(work, struct roll_job, work);

	job->result = roll_job_write(job);
}

static void roll_job_done(struct worker_job *work)
{
	struct roll_job *job = container_of(work, struct roll_job, work);
	struct roll *roll = job->roll;
	int result = job->result;

	roll_job_free(job);
	if (!roll)
		return;
	roll->running = NULL;
	if (result < 0 && !roll->has_failed && roll->hooks.failed)
		roll->hooks.failed(roll->hooks.context, result);
	roll->has_failed = result < 0;
	if (roll->hooks.written)
		roll->hooks.written(roll->hooks.context);
	/* Without memory for the timer: at the next change. */
	(void)loop_set(roll->loop, &roll->timer, loop_now(roll->loop) + ROLL_PAUSE_NS);
}

/* Asks for the set and has it written. */
static void roll_write(struct roll *roll)
{
	struct roll_job *job = calloc(1, sizeof(*job));

	if (job)
		job->folder = strdup(roll->folder);
	if (!job || !job->folder) {
		free(job);
		return; /* no memory: at the next change */
	}
	job->work.run = roll_job_run;
	job->work.done = roll_job_done;
	job->roll = roll;
	memcpy(job->boot, roll->boot, sizeof(job->boot));
	roll->is_changed = false;
	roll->filling = job;
	roll->hooks.list(roll->hooks.context, roll);
	roll->filling = NULL;
	roll->running = job;
	(void)worker_put(roll->work, &job->work); /* any number may wait */
}

static void roll_fire(struct loop_timer *timer)
{
	struct roll *roll = container_of(timer, struct roll, timer);

	if (roll->is_changed && !roll->running)
		roll_write(roll);
}

int roll_new(struct roll **ret_roll, struct loop *loop, struct worker *work, const char *folder,
	     const struct roll_hooks *hooks)
{
	CLEANUP_FREE struct roll *roll = calloc(1, sizeof(*roll));
	int r;

	if (!roll)
		return -ENOMEM;
	r = roll_boot(roll->boot);
	if (r < 0)
		return r;
	roll->folder = strdup(folder);
	if (!roll->folder)
		return -ENOMEM;
	roll->loop = loop;
	roll->work = work;
	roll->hooks = *hooks;
	roll->timer.fire = roll_fire;
	*ret_roll = cleanup_steal(roll);
	return 0;
}

struct roll *roll_free(struct roll *roll)
{
	if (!roll)
		return NULL;
	/* Jobs are run in order, so this one comes after one that runs now. */
	if (roll->running)
		roll->running->roll = NULL;
	if (roll->is_changed) {
		roll->running = NULL;
		roll_write(roll);
		if (roll->running)
			roll->running->roll = NULL;
	}
	loop_cancel(roll->loop, &roll->timer);
	free(roll->folder);
	free(roll);
	return NULL;
}

void roll_changed(struct roll *roll)
{
	roll->is_changed = true;
	/* The first change after a while is written at the end of this turn, with those that come with
	 * it; the timer is set as long as the last time is too near. */
	if (!roll->running && roll->timer.place == 0)
		(void)loop_set(roll->loop, &roll->timer, loop_now(roll->loop)); /* see above */
}

void roll_put(struct roll *roll, const struct roll_entry *entry)
{
	struct roll_job *job = roll->filling;
	struct roll_entry *grown;

	if (job->count == ROLL_ENTRIES_MAX)
		return;
	grown = array_grow(job->entries, &job->capacity, job->count + 1, sizeof(*entry));
	if (!grown)
		return; /* no memory: one that would not be missed */
	job->entries = grown;
	job->entries[job->count++] = *entry;
}
