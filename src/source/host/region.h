/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * tt-metal's own accounting: one shared-memory region per device, /dev/shm/tt_device_ID_memory,
 * written by all processes that use it. Regions are read with read(), never mapped: one may be
 * short while it is being created, and accessing a mapping of it would kill the reader. The
 * contents are written by others and not trusted; region-parse.c has the layouts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

struct pid_cache;
struct snapshot;

#define REGION_PROCESSES 64u
#define REGION_NAME 64u
/* From these versions on, allocations of all threads are in it; rows of the dead are cleared. */
#define REGION_VERSION_ALL 4u
#define REGION_VERSION_CLEARS 4u
#define REGION_SIZE_MAX 9280u /* of the largest layout; what follows is not part of it */

enum region_outcome {
	REGION_UNFINISHED = 1, /* it is being created */
	REGION_UNKNOWN = 2,    /* a later version */
	REGION_BROKEN = 3,     /* it is inconsistent */
	REGION_CLOSED = 4,     /* we may not read it */
};

struct region_process {
	uint32_t pid;   /* in the process's own namespace */
	uint64_t stamp; /* of its last change, ns of the writer's monotonic clock; 0 = never */
	uint64_t used[BOOK_TYPES];
	char name[REGION_NAME + 1]; /* any bytes */
};

struct region {
	uint32_t version;
	uint32_t types;  /* bit 1 << type: it includes that type */
	uint32_t device; /* its number in the process that opened it last */
	bool is_place;   /* id is not the chip's own: board << 8 | position on the board */
	bool remote;
	bool is_full; /* no slot is free for a further process */
	uint64_t id;
	uint64_t stamp; /* of the last change, as a process's */
	uint64_t used[BOOK_TYPES];
	uint32_t process_count;
	struct region_process processes[REGION_PROCESSES];
};

/* Parses the bytes of a region. Returns 0, REGION_UNFINISHED, REGION_UNKNOWN or REGION_BROKEN. */
int region_parse(const void *bytes, size_t length, struct region *ret_region);

/* Whether a file of that name holds the region of a chip, @ret_id. */
bool region_is_name(const char *name, uint64_t *ret_id);

struct region_file {
	uint64_t device, inode;
	uint32_t user;
	bool is_private; /* only its owner (and root) may write to it */
};

/*
 * Reads one file of the folder. Returns 0, an outcome, or a negative errno (-ENOENT: it was just
 * removed).
 */
int region_read(int folder, const char *name, struct region_file *ret_file,
		struct region *ret_region);

/* A readable text for an outcome, such as "is being made". */
const char *region_strerror(int outcome);

/* The folder: TTMEM_SHM_DIR, else /dev/shm. */
const char *region_folder(void);

/*
 * Adds what all regions of the machine contain. Returns 0 or -ENOMEM. @ret_closed: how many we may
 * not read.
 */
int region_collect(struct pid_cache *pid_cache, struct snapshot *snapshot, size_t *ret_closed);
