/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files of the flight recorder: in the state folder, "flight/OWNER/PID-START-WHY.ttrec". OWNER is the
 * user who made the book, with "@" and the namespaces of the process where those are not ours, as
 * source/proc/namespaces.h has them with "," for "/". The files are the daemon's, in a folder that no other user
 * may enter; clients get a descriptor from flight_files_open(). There are so many of each user, and so many bytes
 * of all: the oldest goes, of the user who has most. What a process has is found by its name, so nobody has to
 * remember it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"
#include "daemon/registry/access.h"

struct flight_files;

#define FLIGHT_FILES_USER_MAX 16u /* of one user */
#define FLIGHT_FILES_MAX 512u     /* of all users */

/* Longest name in the state folder. */
#define FLIGHT_FILES_NAME_SIZE (96u + NAMESPACES_SIZE)

enum flight_files_why {
	FLIGHT_FILES_FAILED, /* an allocation */
	FLIGHT_FILES_ENDED,  /* the process, and left something */
};

/* Whose file it is. */
struct flight_files_owner {
	uint32_t user;
	struct process_id process;
	const char *namespaces; /* of the process; not used by flight_files_find() */
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

/*
 * Whether there is a file of a process that began at @start_ns (CLOCK_REALTIME), and its name in the state folder;
 * another process may have had the same numbers before the machine was started. From any thread.
 */
bool flight_files_find(const char *state, const struct flight_files_owner *owner,
		       enum flight_files_why why, uint64_t start_ns,
		       char ret_name[FLIGHT_FILES_NAME_SIZE]);

/*
 * Opens the newest file named @name ("PID-START-WHY.ttrec") among those that @peer may see. The only way to a file
 * for anybody but the daemon's user. From any thread. Return: a descriptor for reading, or a negative errno; -ENOENT
 * also if there are only files that @peer may not see.
 */
int flight_files_open(const char *state, const char *name, const struct access_peer *peer);
