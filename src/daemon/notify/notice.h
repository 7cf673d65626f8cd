/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Something a person should hear of: an incident, or what an ended process left. Made where the book
 * was read, handed to the loop, and told there to everybody who wants to know.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compat/logs/legacy-lines.h"

struct snapshot;
struct snapshot_incident;

#define NOTICE_LINES_MAX 1000u  /* buffers in the text */
#define NOTICE_BUFFERS_MAX 100u /* buffers in the JSON */

struct notice {
	struct notice *next;
	const char *kind; /* as in the incidents document; static */
	uint32_t pid;
	uint32_t user;
	char comm[64]; /* any bytes that are text */
	uint32_t device;
	uint32_t type; /* SNAPSHOT_TYPE_NONE = several, or not known */
	uint64_t bytes;
	uint64_t buffers;
	bool is_totals_only; /* a leak of a process without a book: no buffers are known */
	bool is_old_client;  /* of the old protocol: its end has been told in its own way */
	struct legacy_lines_dead dead; /* of a leak, as the old server told it */
	uint64_t count;                /* how often since it was last told */
	char *json;                    /* one object on one line, with details */
	size_t json_length;
	char *text; /* lines for the log, each ended */
	size_t text_length;
};

/* How a process ended. */
struct notice_ending {
	uint64_t ended_ns;
	const char *how; /* "closed", "died", "execed" */
};

/* NULL: no memory. @more: how often since it was last told. */
struct notice *notice_new_incident(const struct snapshot *snapshot,
				   const struct snapshot_incident *incident, uint64_t more);

/* What process @process left: all of its buffers are in @snapshot, in the order to be told; without a book, totals. */
struct notice *notice_new_leak(const struct snapshot *snapshot, uint32_t process,
			       const struct notice_ending *ending);

/* A whole list. */
struct notice *notice_free(struct notice *notice);
