/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Holds the files of processes open from the moment their books appear until their reports are
 * made. A program that ends at once, and whose file is gone soon after, then still has names; the
 * learner, who looks every two seconds, would come too late.
 *
 * The library also sends a descriptor of its program, which arrives however soon the process ends.
 *
 * Files are opened with O_PATH: that reads nothing, checks no permission and has no side effects;
 * whether the owner of the book may read a file is checked before it is read. A separate thread
 * opens them, because even that may block on a file system that does not answer.
 */

#include <stdint.h>

#include "base/process-id.h"
#include "symbol/symbolizer.h"

/*
 * Files at a time. Of a process, however many books it has, the first are held. Beyond the other two
 * numbers the oldest go: of that user, or of the user who has the most.
 */
#define SYMBOLS_FILES_PROCESS_MAX 24u
#define SYMBOLS_FILES_USER_MAX 256u
#define SYMBOLS_FILES_MAX 1024u         /* and an eighth of all descriptors that we may have */
#define SYMBOLS_FILES_WAITING_MAX 4096u /* processes; more are not looked at */
#define SYMBOLS_FILES_PATIENCE_MS 200u  /* for the files of a process that is waiting */

struct symbols_files;

/* A process whose files are to be held. */
struct symbols_files_owner {
	uint64_t book; /* as in struct symbolizer_module */
	struct process_id process;
	uint32_t user; /* who made the book */
};

/* 0 or a negative errno. */
int symbols_files_new(struct symbols_files **ret_files);
struct symbols_files *symbols_files_free(struct symbols_files *files);

/* For the symbolizer. */
struct symbolizer_holder *symbols_files_holder(struct symbols_files *files);

/* Never waits. */
void symbols_files_hold(struct symbols_files *files, const struct symbols_files_owner *owner);

/* Holds a file that the process has sent, under the name that the kernel has for it. */
void symbols_files_hold_consume(struct symbols_files *files,
				const struct symbols_files_owner *owner, int fd);

/* Closes the files of a book. Never waits for a file. */
void symbols_files_release(struct symbols_files *files, uint64_t book);

uint32_t symbols_files_count(struct symbols_files *files);
