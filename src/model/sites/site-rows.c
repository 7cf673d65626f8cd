/* SPDX-License-Identifier: Apache-2.0 */

/* Rows start with the shortest text; those that are equal are refined step by step. */

#include "model/sites/site-rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/append.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/sites/frame-patterns.h"

#define SITE_ROWS_TEXT 4096u
#define SITE_ROWS_NAME 1024u
#define SITE_ROWS_WRAPPED 3u /* rows of a list that one allocator must have to be named in a tip */

struct site_row {
	struct site site;
	char *text;      /* NULL = there is no site, or no memory */
	bool is_long;    /* with whole names and paths */
	bool has_site;   /* with the frame that stands for the stack */
	uint8_t callers; /* bit for each caller that is named */
	uint8_t places;  /* likewise, with its file and line */
};

_Static_assert(SITE_CALLERS <= 8, "bits of a site_row");

void site_rows_deinit(struct site_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free(rows->rows[i].text);
	free(rows->rows);
	*rows = SITE_ROWS_NULL;
}

static struct site_row *site_rows_new(struct site_rows *rows)
{
	struct site_row *all = rows->is_full ? NULL
					     : array_grow(rows->rows, &rows->capacity,
							  rows->count + 1, sizeof(*all));

	if (!all) {
		rows->is_full = true;
		return NULL;
	}
	rows->rows = all;
	all[rows->count] = (struct site_row){.text = NULL};
	return &all[rows->count++];
}

void site_rows_add_stack(struct site_rows *rows, const struct stack *stack)
{
	struct site site;

	(void)site_choose(stack, &site); /* without one the row is empty */
	site_rows_add(rows, &site);
}

void site_rows_add(struct site_rows *rows, const struct site *site)
{
	struct site_row *row = site_rows_new(rows);

	if (row)
		row->site = *site;
}

/* Whether it is what a demangler gives: C has no "(", Go has it after a dot, old clients before an address. */
static bool site_rows_is_signature(const char *function)
{
	const char *open = strchr(function, '(');

	return open && !(open > function && open[-1] == '.') && !strstr(function, " [0x");
}

const char *site_rows_function(const char *function, char *ret_text, size_t size)
{
	size_t length = strlen(function), used = 0;
	const char *name = function;
	unsigned int depth = 0;
	bool is_operator;

	if (site_rows_is_signature(function))
		name = frame_patterns_name(function, &length);
	if (length == 0) {
		name = function;
		length = strlen(function);
	}
	/* "operator<<" is no list of arguments, "<lambda>" and "<T as Trait>" are names. */
	is_operator = name == function
			      ? !site_rows_is_signature(function) || strstr(name, "operator")
			      : strstr(name, "operator") != NULL;
	for (size_t i = 0; i < length && used + 1 < size; i++) {
		depth += !is_operator && i > 0 && name[i] == '<';
		if (depth == 0)
			ret_text[used++] = name[i];
		depth -= depth > 0 && name[i] == '>';
	}
	ret_text[used] = '\0';
	return ret_text;
}

/* "torch/…/module.py" of an installed package; else the file without folders. */
static void site_rows_put_file(struct append *text, const char *file, bool is_long)
{
	const char *package = is_long ? NULL : site_owner_package(file);
	const char *slash = strrchr(file, '/');
	const char *base = slash ? slash + 1 : file;
	size_t folder = package ? strcspn(package, "/") : 0;

	if (is_long)
		base = file;
	if (package && package + folder < base)
		append(text, "%.*s/%s", (int)folder, package,
		       package + folder + 1 < base ? "…/" : "");
	append(text, "%s", base);
}

static void site_rows_put_place(struct append *text, const struct frame *frame, bool is_long)
{
	if (!frame->file && (!frame->module || frame_is_address(frame)))
		return;
	append(text, " (");
	if (frame->file)
		site_rows_put_file(text, frame->file, is_long);
	else
		append(text, "%s", frame->module);
	if (frame->file && frame->line)
		append(text, ":%" PRIu32, frame->line);
	append(text, ")");
}

static void site_rows_put_name(struct append *text, const struct frame *frame, bool is_long)
{
	char name[SITE_ROWS_NAME];

	if (!frame->function)
		append(text, "?");
	else if (is_long)
		append(text, "%s", frame->function);
	else
		append(text, "%s", site_rows_function(frame->function, name, sizeof(name)));
}

/* The outermost caller first; "…" for those in between that are the same. */
static void site_rows_put_callers(struct append *text, const struct site_row *row)
{
	bool is_gap = false;

	for (unsigned int i = SITE_CALLERS; i-- > 0;) {
		if (row->callers >> i & 1) {
			site_rows_put_name(text, &row->site.callers[i], false);
			if (row->places >> i & 1)
				site_rows_put_place(text, &row->site.callers[i], false);
			append(text, " ← ");
			is_gap = true;
		} else if (is_gap) {
			append(text, "… ← ");
			is_gap = false;
		}
	}
}

static bool site_rows_is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool site_rows_is_same(const struct frame *a, const struct frame *b)
{
	return a->line == b->line && site_rows_is_same_text(a->function, b->function) &&
	       site_rows_is_same_text(a->file, b->file) &&
	       site_rows_is_same_text(a->module, b->module);
}

static const struct frame *site_rows_frame(const struct site_row *row)
{
	return row->site.user_rank ? &row->site.user : &row->site.frame;
}

static void site_rows_write(struct site_row *row)
{
	char bytes[SITE_ROWS_TEXT];
	struct append text = {bytes, sizeof(bytes), 0};
	const struct frame *frame = site_rows_frame(row);
	char *whole;

	if (!row->site.rank)
		return;
	site_rows_put_callers(&text, row);
	site_rows_put_name(&text, frame, row->is_long);
	/* Installed code is only shortened to its package behind the user's own, which it explains. */
	if (!row->site.user_rank && frame->file && !row->is_long) {
		const char *slash = strrchr(frame->file, '/');
		struct frame bare = *frame;

		bare.file = slash ? slash + 1 : frame->file;
		site_rows_put_place(&text, &bare, false);
	} else {
		site_rows_put_place(&text, frame, row->is_long);
	}
	if (row->site.user_rank && row->site.has_via) {
		append(&text, " → ");
		site_rows_put_name(&text, &row->site.via, row->is_long);
		site_rows_put_place(&text, &row->site.via, row->is_long);
	}
	if (row->has_site) {
		append(&text, row->site.has_via ? " → … → " : " → ");
		site_rows_put_name(&text, &row->site.frame, row->is_long);
		site_rows_put_place(&text, &row->site.frame, row->is_long);
	}
	whole = strdup(bytes);
	if (!whole)
		return;
	free(row->text);
	row->text = whole;
}

static int site_rows_compare(const void *left, const void *right)
{
	const struct site_row *a = *(struct site_row *const *)left,
			      *b = *(struct site_row *const *)right;

	return strcmp(a->text, b->text);
}

/* One way to tell rows apart that look the same. Returns whether it changed any of them. */
typedef bool site_rows_step(struct site_row **same, size_t count, unsigned int level);

static bool site_rows_step_long(struct site_row **same, size_t count, unsigned int level)
{
	bool differs = false;

	(void)level; /* there is only one */
	for (size_t i = 1; i < count; i++)
		differs |= !site_rows_is_same(site_rows_frame(same[0]), site_rows_frame(same[i])) ||
			   !site_rows_is_same(&same[0]->site.via, &same[i]->site.via);
	for (size_t i = 0; differs && i < count; i++)
		same[i]->is_long = true;
	return differs;
}

static const struct frame *site_rows_caller(const struct site_row *row, unsigned int level)
{
	static const struct frame none;

	return level < row->site.caller_count ? &row->site.callers[level] : &none;
}

static bool site_rows_has_callers(struct site_row **same, size_t count, unsigned int level)
{
	bool differs = false;

	for (size_t i = 1; i < count; i++)
		differs |= !site_rows_is_same(site_rows_caller(same[0], level),
					      site_rows_caller(same[i], level));
	return differs;
}

static bool site_rows_step_caller(struct site_row **same, size_t count, unsigned int level)
{
	bool differs = site_rows_has_callers(same, count, level);

	for (size_t i = 0; differs && i < count; i++)
		same[i]->callers |= (uint8_t)((level < same[i]->site.caller_count) << level);
	return differs;
}

/* Where the names of the callers do not tell rows apart, their lines do. */
static bool site_rows_step_place(struct site_row **same, size_t count, unsigned int level)
{
	bool differs = site_rows_has_callers(same, count, level);

	for (size_t i = 0; differs && i < count; i++)
		same[i]->places |= (uint8_t)((level < same[i]->site.caller_count) << level);
	return differs;
}

static bool site_rows_step_site(struct site_row **same, size_t count, unsigned int level)
{
	bool differs = false;

	(void)level; /* there is only one */
	for (size_t i = 1; i < count; i++)
		differs |= !site_rows_is_same(&same[0]->site.frame, &same[i]->site.frame);
	for (size_t i = 0; differs && i < count; i++)
		same[i]->has_site = true;
	return differs;
}

/* Takes a step for all rows that look the same. @order: those that have a text. */
static void site_rows_refine(struct site_row **order, size_t count, site_rows_step *step,
			     unsigned int level)
{
	size_t end;

	if (count > 0)
		qsort(order, count, sizeof(struct site_row *), site_rows_compare);
	for (size_t first = 0; first < count; first = end) {
		for (end = first + 1; end < count; end++) {
			if (strcmp(order[first]->text, order[end]->text) != 0)
				break;
		}
		if (end - first < 2 || !step(order + first, end - first, level))
			continue;
		for (size_t i = first; i < end; i++)
			site_rows_write(order[i]);
	}
}

void site_rows_finish(struct site_rows *rows)
{
	CLEANUP_FREE struct site_row **order = calloc(rows->count + 1, sizeof(struct site_row *));
	size_t count = 0;

	for (size_t i = 0; i < rows->count; i++) {
		site_rows_write(&rows->rows[i]);
		if (order && rows->rows[i].text)
			order[count++] = &rows->rows[i];
	}
	site_rows_refine(order, count, site_rows_step_long, 0);
	for (unsigned int level = 0; level < SITE_CALLERS; level++) {
		site_rows_refine(order, count, site_rows_step_caller, level);
		site_rows_refine(order, count, site_rows_step_place, level);
	}
	site_rows_refine(order, count, site_rows_step_site, 0);
}

static const struct site_row *site_rows_at(const struct site_rows *rows, size_t index)
{
	return index < rows->count ? &rows->rows[index] : NULL;
}

const char *site_rows_text(const struct site_rows *rows, size_t index)
{
	const struct site_row *row = site_rows_at(rows, index);

	return row && row->text ? row->text : "";
}

const struct frame *site_rows_place(const struct site_rows *rows, size_t index)
{
	const struct site_row *row = site_rows_at(rows, index);

	if (!row || !row->site.rank)
		return NULL;
	for (unsigned int i = 0; i < SITE_CALLERS; i++) {
		if (row->callers >> i & 1 && row->site.callers[i].file)
			return &row->site.callers[i];
	}
	return site_rows_frame(row);
}

/* A pattern that names the function, or its file if many others are called like it. */
static const char *site_rows_pattern(const struct frame *frame, char *ret_text, size_t size)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;
	bool is_common = !frame->function || frame->function[0] == '<' ||
			 strncmp(frame->function, "__", 2) == 0;

	if (is_common && !frame->file)
		return NULL;
	if (is_common)
		(void)snprintf(ret_text, size, "%s", slash ? slash + 1 : frame->file);
	else
		(void)site_rows_function(frame->function, ret_text, size);
	return ret_text;
}

const char *site_rows_wrapper(const struct site_rows *rows, char *ret_text, size_t size)
{
	const struct frame *most = NULL;
	size_t count = 0;

	/* What more than half of them have is left when each row votes for or against. */
	for (size_t i = 0; i < rows->count; i++) {
		const struct frame *frame = site_rows_frame(&rows->rows[i]);

		if (count == 0)
			most = frame;
		if (site_rows_is_same(most, frame))
			count++;
		else
			count--;
	}
	count = 0;
	for (size_t i = 0; i < rows->count; i++)
		count += rows->rows[i].callers &&
			 site_rows_is_same(most, site_rows_frame(&rows->rows[i]));
	if (count < SITE_ROWS_WRAPPED || count * 2 <= rows->count)
		return NULL;
	return site_rows_pattern(most, ret_text, size);
}

const char *site_rows_single(const struct stack *stack, char *ret_text, size_t size)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;

	site_rows_add_stack(&rows, stack);
	site_rows_finish(&rows);
	(void)snprintf(ret_text, size, "%s", site_rows_text(&rows, 0));
	return ret_text;
}
