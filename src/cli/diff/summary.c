/* SPDX-License-Identifier: Apache-2.0 */

/* Sums are collected as they come and added up when there are many, and at the end. */

#include "cli/diff/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "cli/common/must.h"
#include "model/merge.h"
#include "model/sites/name-stem.h"
#include "model/sites/site.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"

#define SUMMARY_IN "in " /* before a phase that stands for a site */

void summary_deinit(struct summary *summary)
{
	for (size_t i = 0; i < summary->rows.count; i++)
		free(summary->rows.rows[i].site);
	free(summary->totals.rows);
	free(summary->rows.rows);
	pool_deinit(&summary->texts);
	*summary = SUMMARY_NULL;
}

int summary_compare_keys(const struct summary_row *a, const struct summary_row *b)
{
	if (a->device != b->device)
		return bits_compare(a->device, b->device);
	if (a->type != b->type)
		return bits_compare(a->type, b->type);
	if (!a->key || !b->key)
		return !b->key - !a->key;
	return strcmp(a->key, b->key);
}

static int summary_compare(const void *left, const void *right)
{
	return summary_compare_keys(left, right);
}

static void summary_merge(struct summary_list *list)
{
	size_t kept = 0;

	if (list->count > 0)
		qsort(list->rows, list->count, sizeof(*list->rows), summary_compare);
	for (size_t i = 0; i < list->count; i++) {
		struct summary_row *last = kept ? &list->rows[kept - 1] : NULL;

		if (!last || summary_compare_keys(last, &list->rows[i]) != 0) {
			list->rows[kept++] = list->rows[i];
			continue;
		}
		for (size_t v = 0; v < SUMMARY_VALUES; v++)
			last->values[v] = merge_add(last->values[v], list->rows[i].values[v]);
		free(list->rows[i].site);
	}
	list->count = kept;
}

static void summary_add(struct summary_list *list, struct summary_row row, enum summary_value value,
			uint64_t amount)
{
	bool is_full = list->count == list->capacity;

	/* Of many, most are equal. */
	if (is_full)
		summary_merge(list);
	if (is_full && list->count >= list->capacity / 2)
		must_grow(list->rows, &list->capacity, list->capacity + 1);
	row.values[value] = amount;
	list->rows[list->count++] = row;
	list->known |= UINT32_C(1) << value;
}

void summary_add_total(struct summary *summary, uint32_t device, uint32_t type,
		       enum summary_value value, uint64_t amount)
{
	summary_add(&summary->totals, (struct summary_row){.device = device, .type = type}, value,
		    amount);
}

static const char *summary_text(struct summary *summary, const char *text)
{
	return text ? must_have(pool_long_text(&summary->texts, text, strlen(text))) : NULL;
}

/* Without its line: lines move. */
static void summary_frame(struct summary *summary, struct frame *frame)
{
	if (!frame_keep(frame, &summary->texts))
		must_end();
	frame->line = 0;
}

static struct site *summary_site(struct summary *summary, const struct site *site)
{
	struct site *kept;

	if (!site->rank)
		return NULL;
	kept = must_alloc(1, sizeof(*kept));
	*kept = *site;
	summary_frame(summary, &kept->frame);
	summary_frame(summary, &kept->user);
	summary_frame(summary, &kept->via);
	for (unsigned int i = 0; i < site->caller_count; i++)
		summary_frame(summary, &kept->callers[i]);
	return kept;
}

void summary_add_row(struct summary *summary, uint32_t type, const struct summary_name *name,
		     enum summary_value value, uint64_t amount)
{
	const struct summary_row row = {
		.device = SUMMARY_NO_DEVICE,
		.type = type,
		.key = summary_text(summary, name->key),
		.site = summary_site(summary, &name->site),
	};

	summary_add(&summary->rows, row, value, amount);
}

/* What stands for a site that has no stack. */
static const char *summary_label(const struct summary_buffer *buffer, char ret_key[SUMMARY_KEY])
{
	if (buffer->name)
		return name_stem(buffer->name, ret_key, SUMMARY_KEY);
	if (!buffer->phase)
		return NULL;
	(void)snprintf(ret_key, SUMMARY_KEY, SUMMARY_IN "%s", buffer->phase);
	return ret_key;
}

void summary_name_init(struct summary_name *name, const struct summary *summary,
		       const struct summary_buffer *buffer)
{
	*name = SUMMARY_NAME_NULL;
	if (summary->kind == GROUP_PHASE) {
		name->key = buffer->phase;
	} else if (summary->kind == GROUP_NAME) {
		name->key = buffer->name;
	} else if (*stack_calls(buffer->stack, name->text, sizeof(name->text))) {
		name->key = name->text;
		(void)site_choose(buffer->stack, &name->site); /* may have none */
	} else {
		name->key = summary_label(buffer, name->text);
	}
}

/* Buffers that have the same key. A snapshot's texts are interned: they are compared by pointer. */
struct summary_same {
	struct summary_buffer buffer;
	uint32_t type;
	uint64_t bytes;
};

static int summary_compare_same(const void *left, const void *right)
{
	const struct summary_same *a = left, *b = right;

	if (a->type != b->type)
		return bits_compare(a->type, b->type);
	return memcmp(&a->buffer, &b->buffer, sizeof(a->buffer));
}

/* Without what does not tell it apart. */
static struct summary_same summary_same(const struct summary *summary,
					const struct snapshot_buffer *buffer)
{
	struct summary_same same = {
		.type = buffer->type,
		.bytes = snapshot_buffer_bytes(buffer),
	};

	if (summary->kind == GROUP_SITE)
		same.buffer.stack = buffer->stack;
	if (summary->kind == GROUP_NAME || (summary->kind == GROUP_SITE && !buffer->stack))
		same.buffer.name = buffer->name;
	if (summary->kind == GROUP_PHASE ||
	    (summary->kind == GROUP_SITE && !buffer->stack && !buffer->name))
		same.buffer.phase = buffer->phase;
	return same;
}

static void summary_add_same(struct summary *summary, const struct summary_same *first,
			     size_t count, enum summary_value bytes)
{
	struct summary_name name;
	uint64_t sum = 0;

	summary_name_init(&name, summary, &first->buffer);
	for (size_t i = 0; i < count; i++)
		sum = merge_add(sum, first[i].bytes);
	summary_add_row(summary, first->type, &name, bytes, sum);
	if (bytes == SUMMARY_END)
		summary_add_row(summary, first->type, &name, SUMMARY_BUFFERS, count);
}

void summary_add_buffers(struct summary *summary, const struct snapshot *snapshot,
			 const struct summary_part *part, enum summary_value bytes)
{
	CLEANUP_FREE struct summary_same *all =
		must_alloc(snapshot->buffer_count + 1, sizeof(*all));
	size_t count = 0;
	summary->rows.known |= UINT32_C(1) << bytes;
	summary->rows.known |= bytes == SUMMARY_END ? UINT32_C(1) << SUMMARY_BUFFERS : 0;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if ((part->device == SUMMARY_NO_DEVICE || buffer->device == part->device) &&
		    (part->type == BOOK_TYPES || buffer->type == part->type))
			all[count++] = summary_same(summary, buffer);
	}
	if (count > 0)
		qsort(all, count, sizeof(*all), summary_compare_same);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1; end < count && !summary_compare_same(&all[first], &all[end]);)
			end++;
		summary_add_same(summary, &all[first], end - first, bytes);
	}
}

static void summary_add_memory(struct summary *summary, uint32_t device, uint32_t type,
			       const struct snapshot_memory *memory)
{
	if (!memory->allocs && !memory->used && !memory->buffers)
		return;
	summary_add_total(summary, device, type, SUMMARY_END, memory->used);
	summary_add_total(summary, device, type, SUMMARY_BUFFERS, memory->buffers);
	summary_add_total(summary, device, type, SUMMARY_ALLOCS, memory->allocs);
	summary_add_total(summary, device, type, SUMMARY_FREES, memory->frees);
}

void summary_add_counters(struct summary *summary, const struct snapshot *snapshot)
{
	summary->totals.known |= 1u << SUMMARY_END | 1u << SUMMARY_BUFFERS | 1u << SUMMARY_ALLOCS |
				 1u << SUMMARY_FREES;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			for (uint32_t type = 0; type < BOOK_TYPES; type++)
				summary_add_memory(summary, part->device, type,
						   &part->memory[type]);
		}
	}
}

void summary_finish(struct summary *summary)
{
	summary_merge(&summary->totals);
	summary_merge(&summary->rows);
}
