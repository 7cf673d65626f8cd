/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fetches the daemon's lists page by page. Each page is freed before the next is requested: there
 * may be many large ones.
 */

#include "cli/common/daemon-pages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/session.h"
#include "cli/common/stored-names.h"
#include "source/daemon-client/daemon-client.h"

#define DAEMON_PAGES_CURSOR_MAX 64u
#define DAEMON_PAGES_NOTES_MAX 100u
#define DAEMON_PAGES_COMPACT (JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII)

int daemon_pages_ask(struct daemon_client *remote, enum answers_id id, const struct query *query,
		     json_t **ret_document)
{
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int r = daemon_client_get(remote, answers[id].path, query, &text, &length);

	if (r == 0)
		*ret_document = document_load(text, length);
	return r;
}

static uint64_t daemon_pages_number(const json_t *row, const char *key)
{
	json_int_t number = json_integer_value(json_object_get(row, key));

	return number > 0 ? (uint64_t)number : 0;
}

struct daemon_pages_walk {
	struct daemon_client *remote;
	const struct daemon_pages_query *query;
	char cursor[DAEMON_PAGES_CURSOR_MAX]; /* of the page to request; "" = the first */
	unsigned int pages;
	bool is_older; /* the daemon: it knows lists of buffers only in full */
	json_t *page;  /* owned; the latest page */
	char *text;    /* owned; that page as text */
	size_t length;
	bool is_open;               /* a row was written, but not the end of its sublist */
	bool is_full;               /* that sublist has rows */
	bool is_inexact;            /* one of the pages was */
	json_t *notes;              /* of all pages, each once; owned */
	bool is_named;              /* frames of the page have got names */
	struct stored_names *names; /* owned; NULL until a page has such frames */
};

/* Lets the last page go. */
static void daemon_pages_drop(struct daemon_pages_walk *walk)
{
	document_unload(&walk->page);
	free(walk->text);
	walk->text = NULL;
}

static void daemon_pages_walk_deinit(struct daemon_pages_walk *walk)
{
	daemon_pages_drop(walk);
	document_unload(&walk->notes);
	stored_names_free(walk->names);
}

/* Most pages have none, and need not be searched. */
static void daemon_pages_name(struct daemon_pages_walk *walk)
{
	static const char mark[] = "\"build_id\"";

	if (!walk->query->names || !memmem(walk->text, walk->length, mark, sizeof(mark) - 1))
		return;
	if (!walk->names)
		walk->names = stored_names_new();
	walk->is_named = walk->names && stored_names_fill(walk->names, walk->page);
}

/* What is said of one page holds for the document. */
static void daemon_pages_remember(struct daemon_pages_walk *walk)
{
	json_t *notes = json_object_get(walk->page, "notes"), *note, *known;
	size_t i, k;

	walk->is_inexact = walk->is_inexact || json_is_false(json_object_get(walk->page, "exact"));
	if (!walk->notes)
		walk->notes = json_array(); /* without memory there are no notes */
	json_array_foreach(notes, i, note)
	{
		bool is_known = json_array_size(walk->notes) >= DAEMON_PAGES_NOTES_MAX;

		json_array_foreach(walk->notes, k, known) is_known =
			is_known || json_equal(known, note);
		if (!is_known)
			(void)json_array_append(walk->notes, note); /* likewise */
	}
}

static int daemon_pages_get(struct daemon_pages_walk *walk, char **ret_text, size_t *ret_length)
{
	const struct answer *answer = walk->query->answer;
	struct query query = walk->query->query;

	if (!(query.given & QUERY_LIMIT))
		query.limit = answer->page;
	query.cursor = walk->cursor;
	query.given |= QUERY_LIMIT | (*walk->cursor ? QUERY_CURSOR : 0);
	if (walk->is_older)
		query.given &= ~(uint32_t)QUERY_BUFFERS;
	return daemon_client_get(walk->remote, answer->path, &query, ret_text, ret_length);
}

/* The page at the cursor. 0, a daemon_client_outcome, or a negative errno: then the page before is still there. */
static int daemon_pages_page(struct daemon_pages_walk *walk)
{
	CLEANUP(document_unload) json_t *page = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	int r = daemon_pages_get(walk, &text, &length);

	/* A daemon of before an upgrade, perhaps. */
	if (r == DAEMON_CLIENT_REFUSED && (walk->query->query.given & QUERY_BUFFERS) &&
	    !walk->is_older) {
		walk->is_older = true;
		r = daemon_pages_get(walk, &text, &length);
	}
	if (r != 0)
		return r;
	page = document_load(text, length);
	if (!json_is_array(json_object_get(page, walk->query->answer->list)) ||
	    !json_object_get(page, "next"))
		return daemon_client_reject(walk->remote);
	daemon_pages_drop(walk);
	walk->page = cleanup_steal(page);
	walk->text = cleanup_steal(text);
	walk->length = length;
	daemon_pages_remember(walk);
	daemon_pages_name(walk);
	return 0;
}

static json_t *daemon_pages_list(const struct daemon_pages_walk *walk)
{
	return json_object_get(walk->page, walk->query->answer->list);
}

bool daemon_pages_is_cursor(const char *text)
{
	static const char allowed[] = "0123456789abcdefghijklmnopqrstuvwxyz-";

	return *text && strlen(text) < DAEMON_PAGES_CURSOR_MAX && !text[strspn(text, allowed)];
}

/* Advances the cursor. False if this was the last page. */
static bool daemon_pages_go_on(struct daemon_pages_walk *walk)
{
	const char *next = json_string_value(json_object_get(walk->page, "next"));

	if (!next || !daemon_pages_is_cursor(next) || strcmp(next, walk->cursor) == 0 ||
	    (walk->query->query.given & QUERY_LIMIT) || ++walk->pages >= DAEMON_PAGES_PAGES_MAX)
		return false;
	memcpy(walk->cursor, next, strlen(next) + 1);
	return true;
}

/* Write errors are checked at the end, as for all output. */
static void daemon_pages_put(const json_t *value, FILE *out)
{
	(void)json_dumpf(value, out, DAEMON_PAGES_COMPACT);
}

static void daemon_pages_put_comma(bool *is_first, FILE *out)
{
	if (!*is_first)
		fputc(',', out);
	*is_first = false;
}

/* Rows of a sublist, behind those that are there. */
static void daemon_pages_put_sublist(struct daemon_pages_walk *walk, const json_t *row, FILE *out)
{
	const json_t *rows = json_object_get(row, walk->query->answer->sublist);

	for (size_t i = 0; i < json_array_size(rows); i++) {
		bool is_first = !walk->is_full;

		daemon_pages_put_comma(&is_first, out);
		daemon_pages_put(json_array_get(rows, i), out);
		walk->is_full = true;
	}
}

static void daemon_pages_close_row(struct daemon_pages_walk *walk, FILE *out)
{
	if (walk->is_open)
		fputs("]}", out);
	walk->is_open = false;
}

/* A key as the daemon wrote it, which is escaped again. */
static void daemon_pages_put_key(const char *key, FILE *out)
{
	CLEANUP(document_unload) json_t *text = json_string(key);

	daemon_pages_put(text, out);
	fputc(':', out);
}

/* A row, except for the end of its sublist, which may go on on the next page. */
static void daemon_pages_open_row(struct daemon_pages_walk *walk, json_t *row, FILE *out)
{
	bool is_first = true;
	const char *key;
	json_t *value;

	fputc('{', out);
	json_object_foreach(row, key, value)
	{
		if (strcmp(key, walk->query->answer->sublist) == 0)
			continue;
		daemon_pages_put_comma(&is_first, out);
		daemon_pages_put_key(key, out);
		daemon_pages_put(value, out);
	}
	daemon_pages_put_comma(&is_first, out);
	fprintf(out, "\"%s\":[", walk->query->answer->sublist);
	walk->is_open = true;
	walk->is_full = false;
	daemon_pages_put_sublist(walk, row, out);
}

static void daemon_pages_put_row(struct daemon_pages_walk *walk, json_t *row, bool *is_first,
				 FILE *out)
{
	bool has_sublist = walk->query->answer->sublist &&
			   json_is_array(json_object_get(row, walk->query->answer->sublist));

	if (has_sublist && walk->is_open && daemon_pages_number(row, "offset") > 0) {
		daemon_pages_put_sublist(walk, row, out);
		return;
	}
	daemon_pages_close_row(walk, out);
	daemon_pages_put_comma(is_first, out);
	if (has_sublist)
		daemon_pages_open_row(walk, row, out);
	else
		daemon_pages_put(row, out);
}

/* Writes the rows of this page and of all following pages. 0, or why the list is incomplete. */
static int daemon_pages_put_rows(struct daemon_pages_walk *walk, FILE *out)
{
	bool is_first = true, more;
	int r = 0;

	do {
		json_t *rows = daemon_pages_list(walk);

		for (size_t i = 0; i < json_array_size(rows); i++)
			daemon_pages_put_row(walk, json_array_get(rows, i), &is_first, out);
		more = daemon_pages_go_on(walk);
		if (more)
			r = daemon_pages_page(walk);
	} while (more && r == 0);
	daemon_pages_close_row(walk, out);
	return r;
}

/* Members before the list come from the first page, those after it from the last page. */
static int daemon_pages_put_document(struct daemon_pages_walk *walk, FILE *out)
{
	bool is_first = true, is_behind = false;
	const char *list = walk->query->answer->list, *key;
	json_t *value, *first = json_incref(walk->page);
	int r = 0;

	fputc('{', out);
	json_object_foreach(first, key, value)
	{
		daemon_pages_put_comma(&is_first, out);
		fprintf(out, "\"%s\":", key); /* schema names need no escaping */
		if (strcmp(key, list) == 0) {
			fputc('[', out);
			r = daemon_pages_put_rows(walk, out);
			fputc(']', out);
			is_behind = true;
			continue;
		}
		if (is_behind && json_object_get(walk->page, key))
			value = json_object_get(walk->page, key);
		if (strcmp(key, "exact") == 0 && walk->is_inexact)
			value = json_false();
		if (strcmp(key, "notes") == 0 && walk->notes)
			value = walk->notes;
		daemon_pages_put(value, out);
	}
	fputs("}\n", out);
	json_decref(first);
	return r;
}

int daemon_pages_document(struct daemon_client *remote, const struct daemon_pages_query *query,
			  FILE *out, bool *ret_is_begun)
{
	CLEANUP(daemon_pages_walk_deinit)
	struct daemon_pages_walk walk = {.remote = remote, .query = query};
	const char *cursor = query->query.cursor;
	int r;

	if (cursor && daemon_pages_is_cursor(cursor))
		memcpy(walk.cursor, cursor, strlen(cursor) + 1);
	r = daemon_pages_page(&walk);
	*ret_is_begun = r == 0;
	if (r != 0)
		return r;
	if (walk.is_named || (!(query->query.given & QUERY_LIMIT) &&
			      json_is_string(json_object_get(walk.page, "next"))))
		return daemon_pages_put_document(&walk, out);
	fwrite(walk.text, 1, walk.length, out); /* as the daemon wrote it */
	return 0;
}

static int daemon_pages_row(const struct answer *answer, const json_t *object, void *row,
			    daemon_pages_row_fn *fn, void *context)
{
	CLEANUP(pool_deinit) struct pool pool = POOL_NULL;
	int r;

	memset(row, 0, answer->size);
	r = fields_take(object, answer->fields, row, &pool);
	return r < 0 ? r : fn(context, row);
}

int daemon_pages_each(struct daemon_client *remote, const struct daemon_pages_query *query,
		      daemon_pages_row_fn *fn, void *context, uint64_t *ret_hidden)
{
	CLEANUP(daemon_pages_walk_deinit)
	struct daemon_pages_walk walk = {.remote = remote, .query = query};
	CLEANUP_FREE void *row = malloc(query->answer->size);
	int r;

	if (ret_hidden)
		*ret_hidden = 0;
	if (!row)
		return -ENOMEM;
	do {
		r = daemon_pages_page(&walk);
		if (r == 0 && ret_hidden)
			*ret_hidden = daemon_pages_number(walk.page, "hidden");
		for (size_t i = 0; r == 0 && i < json_array_size(daemon_pages_list(&walk)); i++)
			r = daemon_pages_row(query->answer,
					     json_array_get(daemon_pages_list(&walk), i), row, fn,
					     context);
	} while (r == 0 && daemon_pages_go_on(&walk));
	return r;
}

void daemon_pages_print_hidden(uint64_t hidden, const char *what)
{
	if (hidden)
		printf("and %" PRIu64 " %s%s of other users, which you may not see\n", hidden, what,
		       hidden == 1 ? "" : "s");
}

void daemon_pages_print_stack(const struct call_stack *stack, const char *indent)
{
	struct pool texts = POOL_NULL;

	session_print_stack(stdout, call_stack_keep(stack, &texts), indent);
	pool_deinit(&texts);
}

void daemon_pages_print_recording(const char *path)
{
	if (!path)
		return;
	printf("  its last minute, for --from: ");
	text_put(stdout, path);
	putchar('\n');
}

int daemon_pages_fail(const char *command, const struct daemon_client *remote, int result)
{
	if (result < 0) {
		fprintf(stderr, "ttmem %s: cannot ask ttmemd: %s\n", command, strerror(-result));
		return COMMAND_FAILED;
	}
	fprintf(stderr, "ttmem %s: ", command);
	text_put(stderr, daemon_client_reason(remote));
	fputs(".\n", stderr);
	if (result == DAEMON_CLIENT_NONE)
		fputs("Start it with \"ttmemd\", or as a service with \"systemctl start "
		      "ttmemd\".\n",
		      stderr);
	return COMMAND_FAILED;
}
