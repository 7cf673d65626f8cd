/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The JSON documents, as docs/schema/ describes them; the same on the command line and over HTTP.
 * Every document has schema, time_ns, exact, next and notes; all seven types are always present and
 * never folded.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "base/ending.h"
#include "model/sites/group.h"

struct by_user;
struct filter;
struct frame;
struct stack;
struct growth;
struct history;
struct emit;
struct json_t;
struct pool;
struct site;
struct snapshot;
struct snapshot_buffer;
struct snapshot_incident;
struct snapshot_party;
struct snapshot_peak;
struct snapshot_process;
struct snapshot_recording;

/*
 * Writes "command" and "command_cut" into the object of a process, or nothing if it is not for whoever
 * reads the document: they are details.
 */
struct document_commands {
	void (*write)(struct document_commands *commands, struct emit *json,
		      const struct snapshot_process *process);
};

/*
 * Devices and processes; @filter selects devices (and thereby processes). @commands: NULL = without
 * command lines, as for everybody.
 */
void document_smi(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		  struct document_commands *commands);

/* The same, and what each user holds. @users: NULL = without that. */
void document_smi_users(struct emit *json, const struct snapshot *snapshot,
			const struct filter *filter, struct document_commands *commands,
			const struct by_user *users);

/* Processes with all counters; @filter and @commands as above. */
void document_ps(struct emit *json, const struct snapshot *snapshot, const struct filter *filter,
		 struct document_commands *commands);
extern const struct document smi_document, ps_document, map_document, fit_document;
extern const struct field memory_map_space_fields[]; /* what code writes of a struct space */
extern const struct field memory_map_hole_fields[];  /* of a free_blocks_hole */
extern const struct document cards_document;         /* its row: the snapshot */
extern const struct field cards_fields[];            /* of a snapshot_card in "cards" */
extern const struct field cards_stale_fields[];      /* of a snapshot_left in "stale" */

/*
 * A document: what all of them have, its own members, and its name in docs/schema/, which is made from this.
 */
enum document_has {
	DOCUMENT_FROM = 1,   /* "recording", if it is of one */
	DOCUMENT_MOMENT = 2, /* "moment": that of the past that it is of, or null */
	DOCUMENT_LIST = 4,   /* "exact" and "next" */
	DOCUMENT_PLAIN = 8,  /* only its own members: its schema is for its name */
};

struct document {
	const char *schema; /* "ttmem.leaks/1" */
	const char *title;
	const struct field *members;
	unsigned int has; /* enum document_has */
};

/* Of other users, where a daemon answers. */
#define DOCUMENT_HIDDEN                                                                \
	{                                                                              \
		.key = "hidden", .kind = FIELD_NUMBER, .absent = FIELD_ELSEWHERE,      \
		.says = "how many there are of other users that the asker may not see" \
	}

/* Its JSON schema. */
void document_put_schema(struct emit *json, const struct document *document);

/* Up to its members: with the recording that the snapshot is of, and the moment, if the document has them. */
void document_begin(struct emit *json, const struct document *document,
		    const struct snapshot *snapshot);

/* The whole document; @row: of its members. */
void document_put(struct emit *json, const struct document *document,
		  const struct snapshot *snapshot, const void *row);

/* What a document says that is of no snapshot, or is read. */
struct document_about {
	uint64_t time_ns;
	bool is_partial;  /* not exact */
	const char *next; /* NULL = the last page */
	const char *const *notes;
	size_t note_count;
};

/* The whole document; of one without anything else (DOCUMENT_PLAIN) @about may be NULL. */
void document_put_about(struct emit *json, const struct document *document,
			const struct document_about *about, const void *row);

/* Reads one, as fields_take() does. 0, -EINVAL for another document, or -ENOMEM. */
int document_take(const struct json_t *json, const struct document *document,
		  struct document_about *ret_about, void *ret_row, struct pool *pool);

/* Parts of documents. */
void document_open(struct emit *json, const char *schema, uint64_t time_ns);
extern const struct field document_recording_fields[];
extern const struct field document_reach_fields[];     /* of a snapshot_reach */
void document_list_end(struct emit *json, bool exact); /* "exact" and "next" of a complete list */
void document_page_end(struct emit *json, bool exact, const char *next); /* NULL = the last one */
void document_close(struct emit *json, const struct snapshot *snapshot);
void document_close_bare(struct emit *json); /* of a document without notes */
void document_uid(struct emit *json, const char *key, uint64_t unique_id);
void document_flags(struct emit *json, uint32_t flags);
const char *document_bound(uint32_t bound);
const char *document_source(uint32_t source); /* where facts come from; for tables */
