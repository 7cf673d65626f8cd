/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leak reports and failed allocations: groups millions of buffers into a bounded number of call
 * sites, in one pass and without sorting, because the caller is the daemon's only thread. A call
 * site is a type and a stack, whatever its buffers are called; without a stack it is a name without
 * its numbers, or the phase if there is no name. A snapshot holds each text only once, so stacks and
 * phases are compared by pointer. The table has room for more sites than are kept, so that
 * the largest are very likely among those found; buffers that do not fit count only in the totals.
 */

#include "store/store-item.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/text.h"
#include "model/merge.h"
#include "model/sites/name-stem.h"
#include "model/types.h"
#include "store/store-item-names.h"

#define STORE_SITES_GROUPED 2048u /* distinct call sites */

struct store_group {
	const char *name; /* of the first one */
	const char *phase;
	const struct stack *stack;
	uint32_t type;
	bool has_names, has_stems; /* several */
	uint32_t kept;             /* 1 + index in the item, 0 = not kept */
	uint32_t phase_count;
	const char *phases[STORE_PHASES_MAX]; /* of its buffers, in their order */
	const struct snapshot_buffer *first;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t oldest_ns;
};

struct store_groups {
	struct map numbers; /* by hash */
	struct store_names names;
	struct store_group groups[STORE_SITES_GROUPED];
};

static void store_groups_cleanup(struct store_groups **groups)
{
	if (*groups) {
		map_deinit(&(*groups)->numbers);
		store_names_deinit(&(*groups)->names);
	}
	free(*groups);
}

static void store_item_cleanup(struct store_item **item)
{
	store_item_free(*item);
}

static uint64_t store_group_hash(const struct snapshot_buffer *buffer)
{
	if (buffer->stack)
		return hash_fold((uintptr_t)buffer->stack ^ HASH_K0, HASH_K1 + buffer->type);
	return hash_fold(name_stem_hash(buffer->name) ^ HASH_K1, HASH_K0 + buffer->type) ^
	       (buffer->name ? 0 : hash_u64((uintptr_t)buffer->phase));
}

static bool store_group_has(const struct store_group *group, const struct snapshot_buffer *buffer)
{
	if (group->type != buffer->type || group->stack != buffer->stack)
		return false;
	assert(group->first);
	return buffer->stack || (name_stem_compare(group->first->name, buffer->name) == 0 &&
				 (buffer->name || group->phase == buffer->phase));
}

/* The buffer's group, created if there is room; else NULL. */
static struct store_group *store_group_of(struct store_groups *groups,
					  const struct snapshot_buffer *buffer)
{
	uint64_t hash = store_group_hash(buffer);
	struct store_group *group;
	uint32_t number;

	for (uint64_t at = 0;; at++) {
		number = map_find(&groups->numbers, hash, at);
		if (number && !store_group_has(&groups->groups[number - 1], buffer))
			continue;
		if (number)
			return &groups->groups[number - 1];
		if (groups->numbers.count == STORE_SITES_GROUPED ||
		    map_add(&groups->numbers, hash, at, &number) < 0)
			return NULL;
		group = &groups->groups[number - 1];
		*group = (struct store_group){
			.name = buffer->name,
			.phase = buffer->name || buffer->stack ? NULL : buffer->phase,
			.stack = buffer->stack,
			.type = buffer->type,
			.first = buffer,
			.oldest_ns = UINT64_MAX,
		};
		return group;
	}
}

static void store_group_add_phase(struct store_group *group, const char *phase)
{
	if (!phase || group->phase_count == STORE_PHASES_MAX)
		return;
	for (uint32_t i = group->phase_count; i > 0; i--) {
		if (group->phases[i - 1] == phase)
			return;
	}
	group->phases[group->phase_count++] = phase;
}

static uint64_t store_group_add(struct store_groups *groups, const struct snapshot_buffer *buffer)
{
	uint64_t bytes = snapshot_buffer_bytes(buffer);
	struct store_group *group = store_group_of(groups, buffer);

	if (group) {
		group->bytes = merge_add(group->bytes, bytes);
		group->buffers++;
		store_group_add_phase(group, buffer->phase);
		store_names_add(&groups->names, (uint32_t)(group - groups->groups) + 1,
				buffer->name, bytes);
		group->oldest_ns = bits_min(group->oldest_ns, buffer->born_ns);
		group->has_names = group->has_names || group->name != buffer->name;
		group->has_stems =
			group->has_stems || name_stem_compare(group->name, buffer->name) != 0;
	}
	return bytes;
}

/* A group's rank among the others. */
struct store_rank {
	uint64_t bytes;
	uint64_t buffers;
	struct store_group *group;
};

static int store_group_compare(const void *left, const void *right)
{
	const struct store_rank *a = left, *b = right;

	if (a->bytes != b->bytes)
		return bits_compare(b->bytes, a->bytes);
	return bits_compare(b->buffers, a->buffers);
}

/* The phases of a group as one text; a separator inside a phase is replaced. */
static int store_group_phases(const struct store_group *group, struct store_item *item,
			      uint32_t *ret_at)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	char *to;

	for (uint32_t i = 0; i < group->phase_count; i++)
		length += strnlen(group->phases[i], BOOK_PATH_MAX) + 1;
	if (length == 0)
		return store_item_add_text(item, NULL, ret_at);
	to = text = malloc(length);
	if (!text)
		return -ENOMEM;
	for (uint32_t i = 0; i < group->phase_count; i++) {
		size_t size = strnlen(group->phases[i], BOOK_PATH_MAX);

		memcpy(to, group->phases[i], size);
		for (char *at = to;
		     (at = memchr(at, STORE_PARTS_SEPARATOR, size - (size_t)(at - to)));)
			*at = '?';
		to[size] = STORE_PARTS_SEPARATOR;
		to += size + 1;
	}
	to[-1] = '\0';
	return store_item_add_long_text(item, text, length - 1, ret_at);
}

/*
 * What its buffers are called: the stem that all of them have, so that the next process with other
 * numbers is the same site. A single name without a stack stays as it is.
 */
static int store_group_add_name(const struct store_group *group, struct store_item *item,
				uint32_t *ret_at)
{
	char stem[TEXT_CLEAN_SIZE(POOL_TEXT_MAX)];
	int r;

	if (!group->name || group->has_stems)
		return store_item_add_text(item, NULL, ret_at);
	if (!group->has_names && !group->stack)
		return store_item_add_text(item, group->name, ret_at);
	r = store_item_add_text(item, name_stem(group->name, stem, sizeof(stem)), ret_at);
	item->text_last = NULL; /* the next stem is at the same address */
	return r;
}

/* Keeps the largest @most groups as sites of the item. */
static int store_groups_keep(struct store_groups *groups, size_t most, struct store_item *item)
{
	CLEANUP_FREE struct store_rank *order = calloc(groups->numbers.count + 1, sizeof(*order));
	CLEANUP_FREE struct store_names_top *tops =
		store_names_rank(&groups->names, groups->numbers.count);
	size_t count = bits_min(groups->numbers.count, most);
	int r = 0;

	if (!order || !tops)
		return -ENOMEM;
	for (size_t i = 0; i < groups->numbers.count; i++) {
		struct store_group *group = &groups->groups[i];

		order[i] = (struct store_rank){group->bytes, group->buffers, group};
	}
	qsort(order, groups->numbers.count, sizeof(*order), store_group_compare);
	item->sites = calloc(count + 1, sizeof(*item->sites));
	if (!item->sites)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct store_item_site *site = &item->sites[item->site_count++];
		struct store_group *group = order[i].group;
		const struct store_names_top *top = &tops[group - groups->groups];

		*site = (struct store_item_site){
			.type = group->type,
			.name_count = top->count,
			.bytes = group->bytes,
			.buffers = group->buffers,
			.oldest_ns = group->oldest_ns,
		};
		group->kept = (uint32_t)item->site_count;
		r = store_group_add_name(group, item, &site->name);
		if (r == 0)
			r = store_item_add_text(item, group->phase, &site->phase);
		if (r == 0)
			r = store_item_add_stack(item, group->stack, &site->stack);
		if (r == 0)
			r = store_group_phases(group, item, &site->phases);
		if (r == 0)
			r = store_names_text(top, item, &site->names);
	}
	item->cut += groups->numbers.count - count;
	return r;
}

static int store_item_add_buffer(struct store_item *item, const struct snapshot *snapshot,
				 const struct snapshot_buffer *buffer, uint32_t site)
{
	const struct snapshot_part *part =
		snapshot_find_part(snapshot, buffer->process, buffer->device);
	struct store_item_buffer *to = array_grow(item->buffers, &item->buffer_capacity,
						  item->buffer_count + 1, sizeof(*to));
	int r;

	if (!to)
		return -ENOMEM;
	item->buffers = to;
	to += item->buffer_count++;
	*to = (struct store_item_buffer){
		.site = site,
		.buffer = *buffer,
		.device_uid = part ? part->facts.unique_id : 0,
	};
	r = store_item_add_text(item, buffer->name, &to->name);
	if (r == 0)
		r = store_item_add_text(item, buffer->phase, &to->phase);
	if (r == 0)
		r = store_item_add_stack(item, buffer->stack, &to->stack);
	return r;
}

/* One buffer of each site. */
static int store_item_examples(struct store_item *item, const struct snapshot *snapshot,
			       const struct store_groups *groups)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < groups->numbers.count; i++) {
		const struct store_group *group = &groups->groups[i];

		if (group->kept)
			r = store_item_add_buffer(item, snapshot, group->first, group->kept - 1);
	}
	return r;
}

int store_item_leak(const struct snapshot *snapshot, uint32_t process, const struct ending *ending,
		    size_t bytes_max, struct store_item **ret_item)
{
	CLEANUP(store_groups_cleanup)
	struct store_groups *groups = calloc(1, sizeof(*groups));
	CLEANUP(store_item_cleanup)
	struct store_item *item = store_item_new(STORE_ITEM_LEAK, ending->ended_ns);
	uint64_t bytes, buffers;
	int r;

	if (!groups || !item)
		return -ENOMEM;
	item->ending = *ending;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if (buffer->process != process)
			continue;
		item->leaked_bytes = merge_add(item->leaked_bytes, store_group_add(groups, buffer));
		item->leaked_buffers++;
	}
	snapshot_process_totals(&snapshot->processes[process], &bytes, &buffers);
	/* Who had no book left totals, and so did one whose book could not wait to be read. */
	if (item->leaked_buffers == 0)
		item->leaked_bytes = bytes;
	if (item->leaked_buffers == 0 && item->leaked_bytes == 0) {
		*ret_item = NULL;
		return 0;
	}
	/* Of very many only the largest are in the snapshot: then the counters tell the sums. */
	if (buffers > item->leaked_buffers) {
		item->leaked_bytes = bits_max(item->leaked_bytes, bytes);
		item->leaked_buffers = buffers;
	}
	r = store_item_add_process(item, &snapshot->processes[process]);
	if (r == 0)
		r = store_groups_keep(groups, STORE_LEAK_SITES_MAX, item);
	if (r == 0)
		r = store_item_examples(item, snapshot, groups);
	if (r == 0 && item->leaked_buffers > 0)
		r = store_item_list(item, snapshot, process, bytes_max);
	if (r < 0)
		return r;
	store_item_weigh(item);
	*ret_item = cleanup_steal(item);
	return 0;
}

struct store_item *store_item_ending(const struct snapshot *snapshot, uint32_t process,
				     const struct ending *ending)
{
	CLEANUP(store_item_cleanup)
	struct store_item *item = store_item_new(STORE_ITEM_ENDING, ending->ended_ns);

	if (!item || store_item_add_process(item, &snapshot->processes[process]) < 0)
		return NULL;
	item->ending = *ending;
	store_item_weigh(item);
	return cleanup_steal(item);
}

/* Whether memory of @type is in the same place as the incident's. */
static bool store_item_competes(const struct snapshot_incident *incident, uint32_t type)
{
	return incident->type >= BOOK_TYPES || types_folded(incident->type) == types_folded(type);
}

static int store_item_compare_used(const void *left, const void *right)
{
	const struct store_item_sample *a = left, *b = right;

	if (a->used != b->used)
		return bits_compare(b->used, a->used);
	return bits_compare(b->buffers, a->buffers);
}

/*
 * The processes that hold memory on the device. Until the list is cut, a holder's process is the
 * snapshot's index; only those that stay are copied.
 */
static int store_item_holders(struct store_item *item, const struct snapshot *snapshot,
			      uint32_t row)
{
	int r = 0;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; process->alive && k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			for (uint32_t type = 0; part->row == row && type < BOOK_TYPES; type++) {
				struct store_item_sample holder = {
					.process = (uint32_t)i,
					.device = part->device,
					.type = type,
					.used = part->memory[type].used,
					.buffers = part->memory[type].buffers,
				};

				/* Regions do not count buffers. */
				if ((holder.used == 0 && holder.buffers == 0) ||
				    !store_item_competes(&item->incident, type))
					continue;
				r = store_item_add_sample(item, &holder);
				if (r < 0)
					return r;
			}
		}
	}
	if (item->sample_count > 0)
		qsort(item->samples, item->sample_count, sizeof(*item->samples),
		      store_item_compare_used);
	if (item->sample_count > STORE_HOLDERS_MAX) {
		item->cut += item->sample_count - STORE_HOLDERS_MAX;
		item->sample_count = STORE_HOLDERS_MAX;
	}
	for (size_t i = 0; r == 0 && i < item->sample_count; i++) {
		r = store_item_add_process(item, &snapshot->processes[item->samples[i].process]);
		item->samples[i].process = (uint32_t)item->process_count - 1;
	}
	return r;
}

static int store_item_held(struct store_item *item, const struct snapshot *snapshot, uint32_t row)
{
	CLEANUP(store_groups_cleanup)
	struct store_groups *groups = calloc(1, sizeof(*groups));
	uint32_t process = STORE_ITEM_NONE, device = 0;
	bool wanted = false;

	if (!groups)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		/* Buffers are sorted by process and device: look up once for each. */
		if (buffer->process != process || buffer->device != device) {
			const struct snapshot_part *part;

			process = buffer->process;
			device = buffer->device;
			part = snapshot_find_part(snapshot, process, device);
			wanted = part && part->row == row && snapshot->processes[process].alive;
		}
		if (wanted && store_item_competes(&item->incident, buffer->type))
			(void)store_group_add(groups, buffer); /* bytes are summed elsewhere */
	}
	return store_groups_keep(groups, STORE_HOLDERS_MAX, item);
}

struct store_item *store_item_failure(const struct snapshot *snapshot,
				      const struct snapshot_incident *incident)
{
	CLEANUP(store_item_cleanup)
	struct store_item *item = store_item_incident(snapshot, incident);
	uint32_t row;
	int r = 0;

	if (!item)
		return NULL;
	if (snapshot_find_row(snapshot, incident->process, incident->device, &row)) {
		r = store_item_holders(item, snapshot, row);
		if (r == 0)
			r = store_item_held(item, snapshot, row);
	}
	if (r < 0)
		return NULL;
	store_item_weigh(item);
	return cleanup_steal(item);
}
