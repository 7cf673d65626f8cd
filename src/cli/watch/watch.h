/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the loop of "ttmem watch" (watch.c) and its output formats (watch-*.c). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "book/format/layout.h"
#include "model/query.h"
#include "source/books/follow.h"

#define WATCH_TEXT TEXT_CLEAN_SIZE(BOOK_PATH_MAX)

struct namer;
struct watch;

/* An output format. Called in time order; totals include the event. */
struct watch_form {
	const char *name;
	void (*event)(const struct watch *watch, const struct follow_event *event);
	void (*missed)(const struct watch *watch, const struct follow_event *event);
	void (*started)(const struct watch *watch, const struct follow *follow);
	void (*ended)(const struct watch *watch, const struct follow *follow);
};

struct watch {
	const struct watch_form *form;
	bool decimal; /* ids in decimal */
	bool stacks;
	struct namer *namer; /* for their frames; owned by the session */
	struct query query;
	struct follow **follows;
	size_t count, capacity;
};

extern const struct watch_form watch_text;
extern const struct watch_form watch_seed;
extern const struct watch_form watch_json;

/* A string of a book; NULL = none. */
const char *watch_string(const struct follow *follow, uint32_t id, char ret_text[WATCH_TEXT]);

/* The stack of the call, if stacks are wanted; NULL = none. Valid until the next call. */
const struct stack *watch_stack(const struct watch *watch, const struct follow_event *event);

/* Name of the owner's process. */
const char *watch_comm(const struct follow *follow, char ret_text[WATCH_TEXT]);

/* What the owner holds of a type on all devices; BOOK_TYPES = all types. */
void watch_totals(const struct follow *follow, uint32_t type, uint64_t *ret_bytes,
		  uint64_t *ret_buffers);
