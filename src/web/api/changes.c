/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Both texts are read once, in step. What turns out to be the same after something was written for it
 * is taken back: the output is only a length.
 */

#include "web/api/changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "web/server/body.h"

struct changes_cursor {
	const char *at, *end;
};

struct changes {
	struct changes_cursor was, now;
	struct body *out;
	unsigned int depth;
};

static int changes_value(struct changes *changes);

static char changes_peek(const struct changes_cursor *cursor)
{
	return cursor->at < cursor->end ? *cursor->at : '\0';
}

/* Over @c, if that is next. */
static bool changes_take(struct changes_cursor *cursor, char c)
{
	if (changes_peek(cursor) != c)
		return false;
	cursor->at++;
	return true;
}

/* Over a text in quotes. */
static int changes_skip_text(struct changes_cursor *cursor)
{
	const char *at = cursor->at + 1;

	while (at < cursor->end && *at != '"')
		at += *at == '\\' ? 2 : 1;
	if (at >= cursor->end)
		return -EINVAL;
	cursor->at = at + 1;
	return 0;
}

/* Over a number or a word. */
static int changes_skip_word(struct changes_cursor *cursor)
{
	const char *from = cursor->at, *at = from;

	while (at < cursor->end && *at != ',' && *at != '}' && *at != ']')
		at++;
	cursor->at = at;
	return at == from ? -EINVAL : 0;
}

/* Over any value. */
static int changes_skip(struct changes_cursor *cursor)
{
	size_t depth = 0;

	do {
		char c = changes_peek(cursor);
		int r = 0;

		if (c == '"') {
			r = changes_skip_text(cursor);
		} else if (c == '{' || c == '[') {
			depth++;
			cursor->at++;
		} else if (depth > 0 && (c == '}' || c == ']')) {
			depth--;
			cursor->at++;
		} else if (depth > 0 && (c == ',' || c == ':')) {
			cursor->at++;
		} else {
			r = changes_skip_word(cursor);
		}
		if (r < 0)
			return r;
	} while (depth > 0);
	return 0;
}

static int changes_put(struct changes *changes, const char *text)
{
	return body_append(changes->out, text, strlen(text));
}

/* The new value as it is, between @before and @after. */
static int changes_copy(struct changes *changes, const char *before, const char *after)
{
	const char *from = changes->now.at;
	int r = changes_skip(&changes->now);

	if (r == 0)
		r = changes_put(changes, before);
	if (r == 0)
		r = body_append(changes->out, from, (size_t)(changes->now.at - from));
	return r == 0 ? changes_put(changes, after) : r;
}

/* The value at @changes, which has nothing in common with the old one. */
static int changes_replace(struct changes *changes)
{
	char c = changes_peek(&changes->now);
	bool is_plain = c != '{' && c != '[';
	int r = changes_skip(&changes->was);

	if (r == 0)
		r = changes_copy(changes, is_plain ? "" : "{\"=\":", is_plain ? "" : "}");
	return r < 0 ? r : 1;
}

/* The same, of a value that was read in part, from @start. */
static int changes_start_again(struct changes *changes, const struct changes *start, size_t mark)
{
	changes->was = start->was;
	changes->now = start->now;
	changes->out->length = mark;
	return changes_replace(changes);
}

static int changes_plain(struct changes *changes)
{
	const struct changes start = *changes;
	size_t length;
	int r = changes_skip(&changes->was);

	if (r == 0)
		r = changes_skip(&changes->now);
	if (r < 0)
		return r;
	length = (size_t)(changes->was.at - start.was.at);
	if (length == (size_t)(changes->now.at - start.now.at) &&
	    memcmp(start.was.at, start.now.at, length) == 0)
		return 0;
	return changes_start_again(changes, &start, changes->out->length);
}

/* One member. 1: it has changed, 0: it has not; -ENOENT: they are not the same members. */
static int changes_member(struct changes *changes, bool is_first)
{
	const char *key = changes->now.at;
	size_t mark = changes->out->length, length;
	int r = changes_peek(&changes->now) == '"' ? changes_skip_text(&changes->now) : -EINVAL;

	length = (size_t)(changes->now.at - key);
	if (r < 0 || !changes_take(&changes->now, ':'))
		return -EINVAL;
	if ((size_t)(changes->was.end - changes->was.at) <= length ||
	    memcmp(changes->was.at, key, length) != 0 || changes->was.at[length] != ':')
		return -ENOENT;
	changes->was.at += length + 1;
	r = changes_put(changes, is_first ? "" : ",");
	if (r == 0)
		r = body_append(changes->out, key, length + 1); /* with the colon */
	if (r == 0)
		r = changes_value(changes);
	if (r == 0)
		changes->out->length = mark;
	return r;
}

static int changes_object(struct changes *changes)
{
	const struct changes start = *changes;
	size_t mark = changes->out->length;
	bool is_changed = false;
	int r = changes_put(changes, "{");

	changes->was.at++;
	changes->now.at++;
	while (r >= 0 && changes_peek(&changes->was) != '}' && changes_peek(&changes->now) != '}') {
		r = changes_member(changes, !is_changed);
		is_changed = is_changed || r > 0;
		/* A comma on one side only: one has more members. */
		if (r >= 0 && changes_take(&changes->was, ',') != changes_take(&changes->now, ','))
			r = -ENOENT;
	}
	if (r >= 0 && changes_take(&changes->was, '}') != changes_take(&changes->now, '}'))
		r = -ENOENT;
	if (r == -ENOENT)
		return changes_start_again(changes, &start, mark);
	if (r < 0)
		return r;
	if (is_changed)
		r = changes_put(changes, "}");
	else
		changes->out->length = mark;
	return r < 0 ? r : is_changed;
}

/* A list while it is compared. */
struct changes_list {
	struct changes *changes;
	size_t steps;
	int64_t run; /* rows that are the same, or gone if negative, and not yet written */
};

/* Writes the rows that were counted. */
static int changes_put_run(struct changes_list *list)
{
	char text[24];

	if (!list->run)
		return 0;
	(void)snprintf(text, sizeof(text), "%s%" PRId64, list->steps++ ? "," : "",
		       list->run); /* fits */
	list->run = 0;
	return changes_put(list->changes, text);
}

static int changes_begin_step(struct changes_list *list)
{
	int r = changes_put_run(list);

	return r == 0 && list->steps++ ? changes_put(list->changes, ",") : r;
}

static int changes_new_row(struct changes_list *list)
{
	int r = changes_begin_step(list);

	return r < 0 ? r : changes_copy(list->changes, "{\"+\":", "}");
}

/* Counts a row that is the same (1) or gone (-1). */
static int changes_count(struct changes_list *list, int64_t one)
{
	int r = list->run && (list->run > 0) != (one > 0) ? changes_put_run(list) : 0;

	list->run += one;
	return r;
}

static int changes_gone_row(struct changes_list *list)
{
	int r = changes_skip(&list->changes->was);

	return r < 0 ? r : changes_count(list, -1);
}

static int changes_row(struct changes_list *list)
{
	const struct changes_list start = *list;
	size_t mark = list->changes->out->length;
	int r = changes_begin_step(list);

	if (r == 0)
		r = changes_value(list->changes);
	if (r != 0)
		return r < 0 ? r : 0;
	*list = start;
	list->changes->out->length = mark;
	return changes_count(list, 1);
}

/* The number that its first member has. False: this is no such row. */
static bool changes_key(struct changes_cursor cursor, uint64_t *ret_key)
{
	uint64_t key = 0;

	if (!changes_take(&cursor, '{') || changes_peek(&cursor) != '"' ||
	    changes_skip_text(&cursor) < 0 || !changes_take(&cursor, ':'))
		return false;
	if (changes_peek(&cursor) < '0' || changes_peek(&cursor) > '9')
		return false;
	for (char c; c = changes_peek(&cursor), c >= '0' && c <= '9'; cursor.at++)
		key = key * 10 + (uint64_t)(c - '0');
	*ret_key = key;
	return true;
}

/* The next row, or rows. -ENOENT: they are no rows. */
static int changes_step(struct changes_list *list)
{
	struct changes *changes = list->changes;
	bool was_more = changes_peek(&changes->was) != ']';
	bool now_more = changes_peek(&changes->now) != ']';
	uint64_t was = 0, now = 0;
	bool takes_was = !now_more, takes_now = !was_more;
	int r;

	if ((was_more && !changes_key(changes->was, &was)) ||
	    (now_more && !changes_key(changes->now, &now)))
		return -ENOENT;
	if (was_more && now_more) {
		takes_was = was <= now;
		takes_now = now <= was;
	}
	if (takes_was && takes_now)
		r = changes_row(list);
	else
		r = takes_was ? changes_gone_row(list) : changes_new_row(list);
	if (r == 0 && takes_was)
		(void)changes_take(&changes->was, ','); /* not behind the last one */
	if (r == 0 && takes_now)
		(void)changes_take(&changes->now, ',');
	return r;
}

static int changes_list(struct changes *changes)
{
	const struct changes start = *changes;
	struct changes_list list = {.changes = changes};
	size_t mark = changes->out->length;
	int r = changes_put(changes, "[");

	changes->was.at++;
	changes->now.at++;
	while (r == 0 && (changes_peek(&changes->was) != ']' || changes_peek(&changes->now) != ']'))
		r = changes_step(&list);
	if (r == -ENOENT) {
		/* Compared as a whole, without looking inside. */
		*changes = start;
		changes->out->length = mark;
		return changes_plain(changes);
	}
	if (r < 0 || !changes_take(&changes->was, ']') || !changes_take(&changes->now, ']'))
		return r < 0 ? r : -EINVAL;
	/* That the rest is the same goes without saying. */
	if (list.run < 0)
		r = changes_put_run(&list);
	if (r == 0 && list.steps > 0)
		r = changes_put(changes, "]");
	else
		changes->out->length = mark;
	return r < 0 ? r : list.steps > 0;
}

static int changes_value(struct changes *changes)
{
	char was = changes_peek(&changes->was), now = changes_peek(&changes->now);
	int r;

	if (changes->depth >= EMIT_DEPTH)
		return -EINVAL;
	changes->depth++;
	if (was == '{' && now == '{')
		r = changes_object(changes);
	else if (was == '[' && now == '[')
		r = changes_list(changes);
	else
		r = changes_plain(changes);
	changes->depth--;
	return r;
}

int changes_append(struct changes_text was, struct changes_text now, struct body *out)
{
	struct changes changes = {
		.was = {was.text, was.text + was.length},
		.now = {now.text, now.text + now.length},
		.out = out,
	};
	int r = changes_value(&changes);

	if (r < 0)
		return r;
	return changes.was.at == changes.was.end && changes.now.at == changes.now.end ? r : -EINVAL;
}
