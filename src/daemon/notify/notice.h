/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Something that users should know: an incident, or what an exited process left behind. Created
 * where the book was read, handed to the loop, and sent from there to all outputs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/seed-lines.h"
#include "base/book-id.h"
#include "base/ending.h"

struct snapshot;
struct snapshot_incident;

#define NOTICE_LINES_MAX 1000u  /* buffers in the text */
#define NOTICE_BUFFERS_MAX 100u /* buffers in the JSON */
#define NOTICE_FRAMES_MAX 16u   /* in the line of a stack: the innermost */
#define NOTICE_SITE_MAX 1024u   /* bytes; a longer function is cut */

struct notice {
	struct notice *next;
	const char *kind; /* as in the incidents document; static */
	uint32_t pid;
	struct book_id book; /* of an ended process; all zero = none */
	uint32_t user;
	uint32_t maker;   /* who may see it, and where that counts: */
	char *namespaces; /* as in source/proc/namespaces.h; NULL = not known */
	char comm[64];    /* arbitrary text */
	char user_name[64];
	uint32_t device;
	uint32_t type; /* SNAPSHOT_TYPE_NONE = several, or unknown */
	uint64_t bytes;
	uint64_t buffers;
	bool is_totals_only; /* a leak of a process without a book: its buffers are unknown */
	bool is_old_client;  /* its exit has been reported over the old protocol */
	struct seed_lines_dead dead; /* of a leak, as the old server reported it */
	uint64_t count;              /* occurrences since the last notice */
	char *json;                  /* one object on one line, with details */
	size_t json_length;
	char *text; /* lines for the log, each with a newline */
	size_t text_length;
	char *stack; /* of who did it or, for a leak, of the first buffer; one line, NULL = none */
	char *site;  /* its frame that model/sites/site.h chooses; NULL = none */
	char *function, *file; /* of that frame; NULL = not known */
	uint32_t line;         /* 0 = not known */
};

/* NULL: no memory. @more: occurrences since the last notice. */
struct notice *notice_new_incident(const struct snapshot *snapshot,
				   const struct snapshot_incident *incident, uint64_t more);

/*
 * What @process left behind: @snapshot has all of its buffers, in the order of the report; without
 * a book, only totals.
 */
struct notice *notice_new_leak(const struct snapshot *snapshot, uint32_t process,
			       const struct ending *ending);

/* Frees a whole list. */
struct notice *notice_free(struct notice *notice);
