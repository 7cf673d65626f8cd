/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The file of tracked processes, in the state folder. The process that holds the books while the
 * daemon is down may be killed too, or there may be none; then processes that exited meanwhile have
 * left no trace but their entries in this file. The next daemon counts them as unobserved exits. The
 * count is in the file too: it changes with the entries in one step, so that each exit counts once,
 * however often daemons are killed.
 *
 * The file is rewritten whenever the set has changed, at most ten times a second, by a worker. It is
 * replaced by a rename and never synced: it must survive the daemon, but not the machine, after
 * whose restart it means nothing. What is read is not trusted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/book-id.h"
#include "base/process-id.h"

#define TRACKED_FILE_FILE "tracked"
#define TRACKED_FILE_ENTRIES_MAX 8192u /* more are left out */
#define TRACKED_FILE_COMM_SIZE 64
#define TRACKED_FILE_BOOT_SIZE 37 /* with the terminating NUL */

/* Upper limit of the file's size: four numbers and a name per entry, and the lines around them. */
#define TRACKED_FILE_SIZE_MAX \
	(TRACKED_FILE_ENTRIES_MAX * (4u * 21u + TRACKED_FILE_COMM_SIZE) + 256u)

struct loop;
struct proc;
struct tracked_file;
struct worker;

struct tracked_file_entry {
	struct process_id process;
	struct book_id book;
	char comm[TRACKED_FILE_COMM_SIZE]; /* to be written: any bytes; as read: safe to print */
};

struct tracked_file_hooks {
	void *context;
	/* Calls tracked_file_put() for each tracked process. */
	void (*list)(void *context, struct tracked_file *tracked_file);
	/*
	 * A write has ended: the file has the listed set or, if it failed, the one before. May be
	 * NULL.
	 */
	void (*written)(void *context);
	/*
	 * The file could not be written; not reported again before a write succeeds. May be NULL.
	 */
	void (*failed)(void *context, int error);
};

/* For the file in @folder. 0 or a negative errno. All functions below run in the loop's thread. */
int tracked_file_new(struct tracked_file **ret_file, struct loop *loop, struct worker *work,
		     const char *folder, const struct tracked_file_hooks *hooks);

/* Queues a write of the last change; worker_free() must come later and runs it. */
struct tracked_file *tracked_file_free(struct tracked_file *tracked_file);

/* The set has changed: the hook will soon be called to list it. */
void tracked_file_changed(struct tracked_file *tracked_file);
void tracked_file_put(struct tracked_file *tracked_file, const struct tracked_file_entry *entry);

/* Unobserved exits so far, for the next write. The entries that were counted are not listed again. */
void tracked_file_set_missed(struct tracked_file *tracked_file, uint64_t missed);

/* What the file contains. */
struct tracked_file_contents {
	struct tracked_file_entry *entries; /* the caller frees them */
	size_t count;
	uint64_t missed; /* unobserved exits */
};

/*
 * The contents of the file in @folder, nothing if it is from another boot. 0; -ENOENT; -EBADMSG if it is malformed; -EFBIG; or another negative errno. From
 * any thread, like what is below.
 */
int tracked_file_read(const char *folder, struct tracked_file_contents *ret_contents);

/*
 * Keeps only entries whose exit was not observed: the process has exited, and its book is not held
 * (@is_held; NULL = none is). Returns how many are left.
 */
size_t tracked_file_missed(struct tracked_file_entry *entries, size_t count,
			   const struct proc *proc,
			   bool (*is_held)(void *context, const struct tracked_file_entry *entry),
			   void *context);

/* Parses the text of the file; for tests and fuzzing. */
int tracked_file_parse(const char *text, size_t length, const char *boot,
		       struct tracked_file_contents *ret_contents);
int tracked_file_boot(char ret_boot[TRACKED_FILE_BOOT_SIZE]);
