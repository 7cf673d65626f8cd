/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The question that an answer is about, and who asks it. There is one struct of it, from the options of a
 * command to the database, and one table of its fields: how each is read from the text of an option or URL,
 * and written into a URL. src/answers/answers.h tells which fields each answer honours.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/filter.h"
#include "model/sites/group.h"
#include "model/snapshot.h"

struct access_peer;

#define QUERY_LIMIT_MAX 10000u
#define QUERY_BUFFERS_MAX 1000000u
#define QUERY_KINDS                                                                          \
	"double_free, unknown_free, size_change, alloc_failed, clash, trace_overlap, leak, " \
	"overlap or held_at_close"

enum query_field {
	QUERY_PID = 1u << 0,
	QUERY_DEVICE = 1u << 1, /* may be given several times */
	QUERY_TYPE = 1u << 2,
	QUERY_SORT = 1u << 3,
	QUERY_BY = 1u << 4,
	QUERY_LIMIT = 1u << 5,
	QUERY_CURSOR = 1u << 6,
	QUERY_ADDRESS = 1u << 7,
	QUERY_KIND = 1u << 8,
	QUERY_SINCE = 1u << 9,
	QUERY_FROM = 1u << 10,
	QUERY_TO = 1u << 11,
	QUERY_STEP = 1u << 12,
	QUERY_TOKEN = 1u << 13,
	QUERY_SIZE = 1u << 14,
	QUERY_PAGE = 1u << 15,
	QUERY_ONLY = 1u << 16,
	QUERY_BUFFERS = 1u << 17,
	QUERY_BROWSER = 1u << 18,
	QUERY_AT = 1u << 19,
	QUERY_CHANGES = 1u << 20,
	QUERY_CORES = 1u << 21,
	QUERY_PER_BANK = 1u << 22,
	QUERY_USER = 1u << 23,
	QUERY_NAME = 1u << 24,
};

/* Without a field, its member is 0 or NULL; where that is a value too, ask @given. */
struct query {
	uint32_t given; /* enum query_field */
	struct filter filter;
	enum snapshot_order order;
	enum group_kind by;
	uint32_t limit; /* rows of a page; 0 = as many as usual */
	uint32_t buffers_max;
	uint32_t step_ms;
	uint32_t browser; /* a user's id */
	uint32_t cores;   /* of a sharded buffer */
	bool only_past;
	bool changes;
	uint64_t address;
	uint64_t since_ns, from_ns, to_ns, at_ns; /* CLOCK_REALTIME */
	uint64_t size, page_size;
	uint64_t per_bank; /* what a buffer of that size takes */
	/* Borrowed: */
	const char *cursor; /* "next" of an earlier page; only the provider understands it */
	const char *kind;   /* of incidents; only the provider knows which there are */
	const char *token;
	const char *name; /* a pattern */
};

enum query_kind {
	QUERY_IS_TEXT,   /* of @least characters or more, and at most @most, unless that is 0 */
	QUERY_IS_NUMBER, /* from @least to @most */
	QUERY_IS_SIZE,   /* "64K" */
	QUERY_IS_WORD,   /* one of @words */
	QUERY_IS_TYPE,
	QUERY_IS_DEVICE,
};

struct query_word {
	const char *text; /* NULL = the end */
	uint32_t value;
};

struct query_rule {
	const char *name; /* of the parameter, and of a command's option */
	enum query_field field;
	enum query_kind kind;
	const char *must;  /* what a value is, for people */
	const char *chars; /* of a text; NULL = any */
	const struct query_word *words;
	uint64_t least, most;
	size_t offset, width; /* of the member */
};

/* In the order of their bits; ends with one without a name. */
extern const struct query_rule query_rules[];

/* The field of that name; NULL if there is none among @fields. */
const struct query_rule *query_find(const char *name, uint32_t fields);

/* Sets the field, also in @given. @value is borrowed. -EINVAL if it is not such a value. */
int query_set(struct query *query, const struct query_rule *rule, const char *value);

/* Writes what is given as the end of a URL: "?pid=7&type=DRAM"; nothing if nothing is. */
void query_write(const struct query *query, FILE *out);

/*
 * A client of the daemon's own socket, as the kernel reports it; or a browser over TCP that is signed
 * in with the rights of one (web/server/sessions.h).
 */
struct query_asker {
	const struct access_peer *peer; /* for whoever knows what that may see; borrowed */
	size_t peer_size;               /* in bytes, for a copy */
	uint32_t user_id;               /* as the daemon's user namespace has it */
	bool is_stranger;               /* that number is nobody's: nothing is its own */
	bool sees_all;                  /* else only details of its own processes */
	bool is_tcp;                    /* a browser */
	const char *user;               /* then its user's name, for people; else NULL */
	uint64_t came_ns;               /* CLOCK_MONOTONIC: when the request arrived */
};
