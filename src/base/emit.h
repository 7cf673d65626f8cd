/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes JSON to a stream as it is produced. A list of buffers can have millions of rows, so a
 * document is never built in memory. Members take a key, elements of an array take NULL. A key is a
 * word of ours that needs no escapes. Strings are repaired: the output is always valid UTF-8, and
 * what text_is_harmful() names is escaped. (Not called json: that prefix belongs to jansson, which
 * parses the JSON that others write.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EMIT_DEPTH 64 /* nesting; only our own code could exceed it */

struct emit {
	FILE *out;
	unsigned int depth;
	uint64_t filled; /* a bit for each level that already has a member */
};

#define EMIT_INIT(stream)       \
	(struct emit)           \
	{                       \
		.out = (stream) \
	}

/* For members without their object, which emit_members() puts into one. */
#define EMIT_MEMBERS_INIT(stream)           \
	(struct emit)                       \
	{                                   \
		.out = (stream), .depth = 1 \
	}

void emit_open_object(struct emit *json, const char *key);
void emit_close_object(struct emit *json);
void emit_open_array(struct emit *json, const char *key);
void emit_close_array(struct emit *json);

void emit_string(struct emit *json, const char *key, const char *text); /* NULL becomes null */
void emit_u64(struct emit *json, const char *key, uint64_t value);
void emit_i64(struct emit *json, const char *key, int64_t value);
void emit_double(struct emit *json, const char *key,
		 double value); /* five digits; NAN becomes null */
void emit_bool(struct emit *json, const char *key, bool value);
void emit_null(struct emit *json, const char *key);
void emit_hex(struct emit *json, const char *key, uint64_t value); /* "0x1f" */

/* A value that is already JSON. */
void emit_raw(struct emit *json, const char *key, const char *value);

/* Members that are already JSON, at least one. */
void emit_members(struct emit *json, const char *members, size_t length);

/* Ends the document with a newline. */
void emit_end(struct emit *json);
