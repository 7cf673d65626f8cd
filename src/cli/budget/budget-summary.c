/* SPDX-License-Identifier: Apache-2.0 */

/* Puts a summary together. Texts are interned, so that equal ones have equal pointers. */

#include "cli/budget/budget-summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "model/merge.h"
#include "model/sites/site.h"

void budget_summary_deinit(struct budget_summary *summary)
{
	free(summary->moments);
	free(summary->parts);
	pool_deinit(&summary->texts);
	*summary = BUDGET_SUMMARY_NULL;
}

/* Replaces a text by the summary's own copy. */
static void budget_summary_keep(struct budget_summary *summary, const char **text)
{
	if (*text)
		*text = must_text(&summary->texts, *text);
}

static void budget_summary_keep_frame(struct budget_summary *summary, struct frame *frame)
{
	if (!frame_keep(frame, &summary->texts))
		must_end();
}

void budget_summary_set_gave_up(struct budget_summary *summary, const char *reason)
{
	if (!summary->gave_up && reason)
		summary->gave_up = must_text(&summary->texts, reason);
}

size_t budget_summary_begin(struct budget_summary *summary, const struct budget_moment *moment)
{
	struct budget_moment copy = *moment;

	budget_summary_keep(summary, &copy.comm);
	copy.parts = NULL;
	copy.part_count = 0;
	must_grow(summary->moments, &summary->capacity, summary->count + 1);
	summary->moments[summary->count] = copy;
	return summary->count++;
}

static bool budget_summary_is_of(const struct budget_moment *moment,
				 const struct budget_moment *other)
{
	return moment->pid == other->pid && moment->device == other->device &&
	       moment->type == other->type;
}

size_t budget_summary_end_of(struct budget_summary *summary, const struct budget_moment *process)
{
	struct budget_moment end = *process;

	/* Backwards, because the buffers of a process stand together. */
	for (size_t i = summary->count; i > 0; i--) {
		const struct budget_moment *moment = &summary->moments[i - 1];

		if (!moment->is_peak && budget_summary_is_of(moment, process))
			return i - 1;
	}
	end.is_peak = false;
	end.is_exact = true;
	end.bytes = 0;
	return budget_summary_begin(summary, &end);
}

void budget_summary_add(struct budget_summary *summary, const struct budget_part *part)
{
	struct budget_part copy = *part;

	copy.site.rank = copy.site.frame.function || copy.site.frame.file;
	copy.site.frame.module = copy.site.frame.build_id = NULL;
	if (copy.site.rank)
		copy.name = NULL;
	budget_summary_keep(summary, &copy.name);
	budget_summary_keep_frame(summary, &copy.site.frame);
	budget_summary_keep_frame(summary, &copy.site.user);
	budget_summary_keep_frame(summary, &copy.site.via);
	for (unsigned int i = 0; i < copy.site.caller_count; i++)
		budget_summary_keep_frame(summary, &copy.site.callers[i]);
	budget_summary_keep(summary, &copy.calls);
	budget_summary_keep(summary, &copy.phase);
	must_grow(summary->parts, &summary->part_capacity, summary->part_count + 1);
	summary->parts[summary->part_count++] = copy;
}

static int budget_summary_compare_texts(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

static int budget_summary_compare_frames(const struct frame *a, const struct frame *b)
{
	int r = budget_summary_compare_texts(a->file, b->file);

	if (r == 0)
		r = bits_compare(a->line, b->line);
	return r ? r : budget_summary_compare_texts(a->function, b->function);
}

static int budget_summary_compare_callers(const struct site *a, const struct site *b)
{
	int r = bits_compare(a->caller_count, b->caller_count);

	for (unsigned int i = 0; r == 0 && i < a->caller_count; i++)
		r = budget_summary_compare_frames(&a->callers[i], &b->callers[i]);
	return r;
}

int budget_summary_compare_rows(const struct budget_part *a, const struct budget_part *b)
{
	int r = budget_summary_compare_frames(&a->site.frame, &b->site.frame);

	if (r == 0)
		r = budget_summary_compare_frames(&a->site.user, &b->site.user);
	if (r == 0)
		r = budget_summary_compare_callers(&a->site, &b->site);
	if (r == 0)
		r = budget_summary_compare_texts(a->name, b->name);
	return r ? r : budget_summary_compare_texts(a->phase, b->phase);
}

/* 0 for parts of the same moment, stack and phase. */
static int budget_summary_compare(const void *left, const void *right)
{
	const struct budget_part *a = left, *b = right;
	int r = bits_compare(a->moment, b->moment);

	if (r == 0)
		r = budget_summary_compare_rows(a, b);
	return r ? r : budget_summary_compare_texts(a->calls, b->calls);
}

/* Largest first; then as above, so that the order is always the same. */
static int budget_summary_compare_sizes(const void *left, const void *right)
{
	const struct budget_part *a = left, *b = right;
	int r = bits_compare(a->moment, b->moment);

	if (r == 0)
		r = bits_compare(b->bytes, a->bytes);
	return r ? r : budget_summary_compare(left, right);
}

void budget_summary_finish(struct budget_summary *summary)
{
	struct budget_part *parts = summary->parts;
	size_t n = 0;

	if (summary->part_count == 0)
		return;
	qsort(parts, summary->part_count, sizeof(*parts), budget_summary_compare);
	for (size_t i = 0; i < summary->part_count; i++) {
		if (n > 0 && budget_summary_compare(&parts[n - 1], &parts[i]) == 0)
			parts[n - 1].bytes = merge_add(parts[n - 1].bytes, parts[i].bytes);
		else
			parts[n++] = parts[i];
	}
	summary->part_count = n;
	qsort(parts, n, sizeof(*parts), budget_summary_compare_sizes);
	for (size_t i = 0; i < n; i++) {
		struct budget_moment *moment = &summary->moments[parts[i].moment];

		if (moment->part_count++ == 0)
			moment->parts = &parts[i];
		/* An end has what its parts have. */
		if (!moment->is_peak)
			moment->bytes = merge_add(moment->bytes, parts[i].bytes);
	}
}

const struct budget_moment *budget_summary_parts_of(const struct budget_summary *summary,
						    const struct budget_moment *moment)
{
	if (moment->part_count > 0)
		return moment;
	for (size_t i = 0; i < summary->count; i++) {
		const struct budget_moment *other = &summary->moments[i];

		if (other->part_count > 0 && budget_summary_is_of(other, moment))
			return other;
	}
	return NULL;
}
