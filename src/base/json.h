/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writing JSON as it comes, to a stream. A list of buffers can have millions of rows, so a document is
 * never built in memory. Members take a key, elements of an array take NULL. Strings are repaired:
 * what comes out is always valid UTF-8.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH 64 /* nesting; only our own code could exceed it */

struct json {
	FILE *out;
	unsigned int depth;
	uint64_t filled; /* a bit for each level that has a member already */
};

#define JSON_INIT(stream)       \
	(struct json)           \
	{                       \
		.out = (stream) \
	}

void json_open_object(struct json *json, const char *key);
void json_close_object(struct json *json);
void json_open_array(struct json *json, const char *key);
void json_close_array(struct json *json);

void json_string(struct json *json, const char *key, const char *text); /* NULL becomes null */
void json_u64(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_hex(struct json *json, const char *key, uint64_t value); /* "0x1f" */

/* Ends the document with a newline. */
void json_end(struct json *json);
