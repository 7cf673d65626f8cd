/* SPDX-License-Identifier: Apache-2.0 */

/* Both lists are sorted: one walk along both finds what belongs together. */

#include "cli/diff/summary-diff.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"

static uint64_t summary_distance(const struct summary_amount *value)
{
	if (!value->is_known)
		return 0;
	return value->after > value->before ? value->after - value->before
					    : value->before - value->after;
}

static bool summary_differs(const struct summary_change *change)
{
	for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
		if (summary_distance(&change->values[value]))
			return true;
	}
	return false;
}

static uint64_t summary_weight(const struct summary_change *change, enum summary_value a,
			       enum summary_value b)
{
	return bits_max(summary_distance(&change->values[a]), summary_distance(&change->values[b]));
}

/* Bytes first, then counts, then by key, so that equal inputs have equal outputs. */
static int summary_compare_changes(const void *left, const void *right)
{
	static const enum summary_value order[][2] = {
		{SUMMARY_PEAK, SUMMARY_END},
		{SUMMARY_BUFFERS, SUMMARY_BUFFERS},
		{SUMMARY_ALLOCS, SUMMARY_FREES},
		{SUMMARY_TEMPORARIES, SUMMARY_TEMPORARIES},
	};
	const struct summary_change *a = left, *b = right;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		uint64_t x = summary_weight(a, order[i][0], order[i][1]);
		uint64_t y = summary_weight(b, order[i][0], order[i][1]);

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

static struct summary_amount summary_amount(uint64_t before, uint64_t after, bool is_known)
{
	int64_t change = after >= before ? (int64_t)bits_min(after - before, INT64_MAX)
					 : -(int64_t)bits_min(before - after, INT64_MAX);

	return (struct summary_amount){before, after, change, is_known};
}

/* What the two next rows are: one of them alone, or both if they are about the same. */
static struct summary_change summary_next(const struct summary_list *before,
					  const struct summary_list *after, size_t *b, size_t *a)
{
	const struct summary_row *old = summary_at(before, *b), *new = summary_at(after, *a), *row;
	struct summary_change change;
	int order;

	if (*b == before->count)
		order = 1;
	else
		order = *a == after->count ? -1 : summary_compare_keys(old, new);
	row = order <= 0 ? old : new;
	*b += order <= 0;
	*a += order >= 0;
	change = (struct summary_change){row->device, row->type, row->key, row->site, {{0}}};
	for (uint32_t value = 0; value < SUMMARY_VALUES; value++)
		change.values[value] = summary_amount(order <= 0 ? old->values[value] : 0,
						      order >= 0 ? new->values[value] : 0,
						      before->known & after->known & 1u << value);
	return change;
}

struct summary_changes summary_diff(const struct summary_list *before,
				    const struct summary_list *after, bool with_same)
{
	struct summary_changes changes = {.known = before->known & after->known};
	size_t b = 0, a = 0;

	changes.list = must_alloc(before->count + after->count + 1, sizeof(*changes.list));
	while (b < before->count || a < after->count) {
		struct summary_change change = summary_next(before, after, &b, &a);

		if (with_same || summary_differs(&change))
			changes.list[changes.count++] = change;
	}
	if (!with_same && changes.count > 0)
		qsort(changes.list, changes.count, sizeof(*changes.list), summary_compare_changes);
	return changes;
}

void summary_changes_deinit(struct summary_changes *changes)
{
	free(changes->list);
	*changes = SUMMARY_CHANGES_NULL;
}
