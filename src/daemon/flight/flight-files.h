/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files of the flight recorder: in the state folder, "flight/USER/PID-START-WHY.ttrec". A file
 * belongs to the daemon, and the user who made the book may read it, nobody else. There are so many
 * of each user, and so many bytes of all: the oldest goes, of the user who has most. What a process
 * has is found by its name, so nobody has to remember it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flight_files;

#define FLIGHT_FILES_USER_MAX 16u /* of one user */
#define FLIGHT_FILES_MAX 512u     /* of all users */

/* Longest name in the state folder. */
#define FLIGHT_FILES_NAME_SIZE 96u

enum flight_files_why {
	FLIGHT_FILES_FAILED, /* an allocation */
	FLIGHT_FILES_ENDED,  /* the process, and left something */
};

/* Whose file it is. */
struct flight_files_owner {
	uint32_t user;
	uint32_t pid;
	uint64_t start_ticks;
};

struct flight_files_config {
	const char *state; /* folder; outlives the files */
	uint64_t size_max; /* of all of them */
	uint64_t keep_s;
};

/* -EACCES ...: there is no such folder that we can use. */
int flight_files_new(struct flight_files **ret_files, const struct flight_files_config *config);
struct flight_files *flight_files_free(struct flight_files *files);

/* A new file, which is not there yet. 0 or a negative errno. */
int flight_files_make(struct flight_files *files, const struct flight_files_owner *owner,
		      int *ret_fd);

/*
 * What was made is complete, and replaces what the owner had; older files may go. @fd is consumed in
 * any case. 0 or a negative errno.
 */
int flight_files_keep_consume(struct flight_files *files, const struct flight_files_owner *owner,
			      enum flight_files_why why, int fd);
void flight_files_discard_consume(struct flight_files *files,
				  const struct flight_files_owner *owner, int fd);

/* Removes what is too old. */
void flight_files_expire(struct flight_files *files);

/* "flight/..." in the state folder. */
void flight_files_name(const struct flight_files_owner *owner, enum flight_files_why why,
		       char ret_name[FLIGHT_FILES_NAME_SIZE]);

/*
 * Whether there is a file of a process that began at @start_ns (CLOCK_REALTIME); another one may have
 * had the same numbers before the machine was started. From any thread.
 */
bool flight_files_find(const char *state, const struct flight_files_owner *owner,
		       enum flight_files_why why, uint64_t start_ns,
		       char ret_name[FLIGHT_FILES_NAME_SIZE]);
