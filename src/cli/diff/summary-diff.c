/* SPDX-License-Identifier: Apache-2.0 */

/* Both lists are sorted: one walk along both finds what belongs together. */

#include "cli/diff/summary-diff.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"

static const uint64_t summary_nothing[SUMMARY_VALUES];

int64_t summary_change(const struct summary_change *change, enum summary_value value)
{
	uint64_t before = change->before[value], after = change->after[value];

	if (after >= before)
		return (int64_t)bits_min(after - before, INT64_MAX);
	return -(int64_t)bits_min(before - after, INT64_MAX);
}

static uint64_t summary_distance(const struct summary_change *change, enum summary_value value)
{
	uint64_t before = change->before[value], after = change->after[value];

	return after > before ? after - before : before - after;
}

static bool summary_differs(const struct summary_change *change, uint32_t known)
{
	for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
		if (known >> value & 1 && change->before[value] != change->after[value])
			return true;
	}
	return false;
}

static uint64_t summary_weight(const struct summary_change *change, uint32_t known,
			       enum summary_value a, enum summary_value b)
{
	return bits_max(known >> a & 1 ? summary_distance(change, a) : 0,
			known >> b & 1 ? summary_distance(change, b) : 0);
}

/* Bytes first, then counts, then by key, so that equal inputs have equal outputs. */
static int summary_compare_changes(const void *left, const void *right, void *context)
{
	static const enum summary_value order[][2] = {
		{SUMMARY_PEAK, SUMMARY_END},
		{SUMMARY_BUFFERS, SUMMARY_BUFFERS},
		{SUMMARY_ALLOCS, SUMMARY_FREES},
		{SUMMARY_TEMPORARIES, SUMMARY_TEMPORARIES},
	};
	const struct summary_change *a = left, *b = right;
	const uint32_t *known = context;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		uint64_t x = summary_weight(a, *known, order[i][0], order[i][1]);
		uint64_t y = summary_weight(b, *known, order[i][0], order[i][1]);

		if (x != y)
			return bits_compare(y, x);
	}
	return summary_compare_keys(
		&(struct summary_row){.device = a->device, .type = a->type, .key = a->key},
		&(struct summary_row){.device = b->device, .type = b->type, .key = b->key});
}

/* Beyond the end there is one of nothing. */
static const struct summary_row *summary_at(const struct summary_list *list, size_t i)
{
	static const struct summary_row nothing;

	return i < list->count ? &list->rows[i] : &nothing;
}

/* What the two next rows are: one of them alone, or both if they are about the same. */
static struct summary_change summary_next(const struct summary_list *before,
					  const struct summary_list *after, size_t *b, size_t *a)
{
	const struct summary_row *old = summary_at(before, *b), *new = summary_at(after, *a), *row;
	int order;

	if (*b == before->count)
		order = 1;
	else
		order = *a == after->count ? -1 : summary_compare_keys(old, new);
	row = order <= 0 ? old : new;
	*b += order <= 0;
	*a += order >= 0;
	return (struct summary_change){
		.device = row->device,
		.type = row->type,
		.key = row->key,
		.site = row->site,
		.before = order <= 0 ? old->values : summary_nothing,
		.after = order >= 0 ? new->values : summary_nothing,
	};
}

struct summary_changes summary_diff(const struct summary_list *before,
				    const struct summary_list *after, bool with_same)
{
	struct summary_changes changes = {.known = before->known & after->known};
	size_t b = 0, a = 0;

	changes.list = must_alloc(before->count + after->count + 1, sizeof(*changes.list));
	while (b < before->count || a < after->count) {
		struct summary_change change = summary_next(before, after, &b, &a);

		if (with_same || summary_differs(&change, changes.known))
			changes.list[changes.count++] = change;
	}
	if (!with_same && changes.count > 0)
		qsort_r(changes.list, changes.count, sizeof(*changes.list), summary_compare_changes,
			&changes.known);
	return changes;
}

void summary_changes_deinit(struct summary_changes *changes)
{
	free(changes->list);
	*changes = SUMMARY_CHANGES_NULL;
}
