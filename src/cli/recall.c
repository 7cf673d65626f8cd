/* SPDX-License-Identifier: Apache-2.0 */

/* Pages of the past; the header tells the idea. */

#include "cli/recall.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/command.h"
#include "source/remote.h"

#define RECALL_DEPTH 64

static size_t recall_skip_string(const char *text, size_t length, size_t at)
{
	for (at++; at < length && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at + 1;
}

static size_t recall_skip_blanks(const char *text, size_t length, size_t at)
{
	while (at < length && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	return at;
}

/* The end of the value at @at; beyond @length if it has none. */
static size_t recall_skip_value(const char *text, size_t length, size_t at)
{
	unsigned int depth = 0;

	while (at < length) {
		char c = text[at];

		if (c == '"') {
			at = recall_skip_string(text, length, at);
			if (depth == 0)
				return at;
			continue;
		}
		if (depth == 0 && (c == ',' || c == '}' || c == ']'))
			return at;
		if (c == '{' || c == '[')
			depth++;
		if ((c == '}' || c == ']') && --depth == 0)
			return at + 1;
		if (depth > RECALL_DEPTH)
			break;
		at++;
	}
	return length + 1;
}

int recall_find(const char *text, size_t length, const char *key, size_t *ret_begin,
		size_t *ret_end)
{
	size_t at = recall_skip_blanks(text, length, 0), wanted = strlen(key);

	if (at >= length || text[at] != '{')
		return -EBADMSG;
	do {
		size_t name = recall_skip_blanks(text, length, at + 1), name_end, begin;

		if (name < length && text[name] == '}')
			return -ENOENT;
		if (name >= length || text[name] != '"')
			return -EBADMSG;
		name_end = recall_skip_string(text, length, name);
		begin = recall_skip_blanks(text, length, name_end);
		if (begin >= length || text[begin] != ':')
			return -EBADMSG;
		begin = recall_skip_blanks(text, length, begin + 1);
		at = recall_skip_value(text, length, begin);
		if (at > length || at == begin)
			return -EBADMSG;
		if (name_end - name == wanted + 2 && memcmp(text + name + 1, key, wanted) == 0) {
			*ret_begin = begin;
			*ret_end = at;
			return 0;
		}
		at = recall_skip_blanks(text, length, at);
	} while (at < length && text[at] == ',');
	return at < length && text[at] == '}' ? -ENOENT : -EBADMSG;
}

/* One page and where its list lies in it. */
struct recall_page {
	char *text;
	size_t length;
	size_t begin, end;
	char next[sizeof(((struct native_request *)NULL)->cursor)]; /* "" = there is none */
};

static void recall_page_deinit(struct recall_page *page)
{
	free(page->text);
	page->text = NULL;
}

static int recall_page_next(struct recall_page *page)
{
	size_t begin, end, length;

	if (recall_find(page->text, page->length, "next", &begin, &end) < 0)
		return REMOTE_GARBAGE;
	length = end - begin;
	page->next[0] = '\0';
	if (page->text[begin] != '"')
		return 0;
	if (length < 3 || length - 2 >= sizeof(page->next))
		return REMOTE_GARBAGE;
	memcpy(page->next, page->text + begin + 1, length - 2);
	page->next[length - 2] = '\0';
	return 0;
}

static int recall_page(struct remote *remote, const struct native_request *request,
		       const char *list, struct recall_page *ret_page)
{
	CLEANUP(recall_page_deinit) struct recall_page page = {.text = NULL};
	int r = remote_ask(remote, request, &page.text, &page.length);

	if (r != 0)
		return r;
	if (recall_find(page.text, page.length, list, &page.begin, &page.end) < 0 ||
	    page.text[page.begin] != '[' || page.text[page.end - 1] != ']')
		return REMOTE_GARBAGE;
	r = recall_page_next(&page);
	if (r != 0)
		return r;
	*ret_page = page;
	page.text = NULL;
	return 0;
}

/* The question for the page after @page. False: there is none. */
static bool recall_go_on(struct native_request *request, const struct recall_page *page,
			 unsigned int *pages)
{
	if (!*page->next || ++*pages >= RECALL_PAGES_MAX ||
	    strcmp(page->next, request->cursor) == 0)
		return false;
	memset(request->cursor, 0, sizeof(request->cursor));
	memcpy(request->cursor, page->next, strlen(page->next));
	return true;
}

int recall_document(struct remote *remote, const struct native_request *request, const char *list,
		    FILE *out)
{
	CLEANUP(recall_page_deinit) struct recall_page page = {.text = NULL};
	struct native_request question = *request;
	unsigned int pages = 0;
	bool filled;
	int r = recall_page(remote, &question, list, &page);

	if (r != 0)
		return r;
	/* Up to the end of the rows; what follows them waits for the last page. */
	fwrite(page.text, 1, page.end - 1, out);
	filled = page.end - page.begin > 2;
	while (recall_go_on(&question, &page, &pages)) {
		struct recall_page more;

		r = recall_page(remote, &question, list, &more);
		if (r != 0)
			break;
		if (filled && more.end - more.begin > 2)
			fputc(',', out);
		filled = filled || more.end - more.begin > 2;
		fwrite(more.text + more.begin + 1, 1, more.end - more.begin - 2, out);
		recall_page_deinit(&page);
		page = more;
	}
	fwrite(page.text + page.end - 1, 1, page.length - page.end + 1, out);
	return r;
}

int recall_list(struct remote *remote, const struct native_request *request, const char *list,
		char **ret_text)
{
	CLEANUP_FREE char *text = NULL;
	struct native_request question = *request;
	FILE *out;
	size_t length = 0;
	unsigned int pages = 0;
	bool more, filled = false;
	int r;

	out = open_memstream(&text, &length);
	if (!out)
		return -errno;
	fputc('[', out);
	do {
		CLEANUP(recall_page_deinit) struct recall_page page = {.text = NULL};

		r = recall_page(remote, &question, list, &page);
		if (r == 0 && page.end - page.begin > 2) {
			if (filled)
				fputc(',', out);
			filled = true;
			fwrite(page.text + page.begin + 1, 1, page.end - page.begin - 2, out);
		}
		more = r == 0 && recall_go_on(&question, &page, &pages);
	} while (more);
	fputc(']', out);
	if (fclose(out) < 0 && r == 0)
		r = -ENOMEM;
	if (r == 0)
		*ret_text = cleanup_steal(text);
	return r;
}

static int recall_page_rows(const struct recall_page *page, recall_fn *fn, void *context)
{
	json_t *rows = json_loadb(page->text + page->begin, page->end - page->begin,
				  JSON_DECODE_INT_AS_REAL, NULL);
	int r = rows ? 0 : REMOTE_GARBAGE;

	for (size_t i = 0; r == 0 && i < json_array_size(rows); i++)
		r = fn(context, json_array_get(rows, i));
	json_decref(rows);
	return r;
}

int recall_rows(struct remote *remote, const struct native_request *request, const char *list,
		recall_fn *fn, void *context)
{
	struct native_request question = *request;
	unsigned int pages = 0;
	bool more;
	int r;

	do {
		CLEANUP(recall_page_deinit) struct recall_page page = {.text = NULL};

		r = recall_page(remote, &question, list, &page);
		if (r == 0)
			r = recall_page_rows(&page, fn, context);
		more = r == 0 && recall_go_on(&question, &page, &pages);
	} while (more);
	return r;
}

uint64_t recall_number(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);
	double number = json_is_real(value) ? json_real_value(value) : 0;

	if (!(number > 0))
		return 0;
	return number >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)number;
}

const char *recall_text(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

int recall_fail(const char *command, const struct remote *remote, int result)
{
	if (result < 0) {
		fprintf(stderr, "ttmem %s: cannot ask ttmemd: %s\n", command, strerror(-result));
		return COMMAND_FAILED;
	}
	fprintf(stderr, "ttmem %s: ", command);
	text_put(stderr, remote_reason(remote));
	fputs(".\n", stderr);
	if (result == REMOTE_NONE)
		fputs("Start it with \"ttmemd\", or as a service with \"systemctl start "
		      "ttmemd\".\n",
		      stderr);
	return COMMAND_FAILED;
}
