/* SPDX-License-Identifier: Apache-2.0 */

/* Copies totals and incidents out of a snapshot; store-item-sites.c groups buffers. */

#include "store/store-item.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "model/sites/stack.h"

static void store_item_cleanup(struct store_item **item)
{
	store_item_free(*item);
}

struct store_item *store_item_new(enum store_item_kind kind, uint64_t time_ns)
{
	struct store_item *item = calloc(1, sizeof(*item));
	uint32_t none;

	if (!item)
		return NULL;
	item->kind = kind;
	item->time_ns = time_ns;
	/* The empty text is at offset 0. */
	if (store_item_add_text(item, "", &none) < 0)
		return store_item_free(item);
	return item;
}

struct store_item *store_item_free(struct store_item *item)
{
	if (!item)
		return NULL;
	free(item->texts);
	free(item->processes);
	free(item->samples);
	free(item->sites);
	free(item->buffers);
	free(item->repeats);
	store_item_drop_rows(item);
	free(item);
	return NULL;
}

void store_item_drop_rows(struct store_item *item)
{
	for (size_t i = 0; i < item->chunk_count; i++) {
		item->cut += item->chunks[i].rows;
		item->bytes -= bits_min(item->bytes, item->chunks[i].length);
		free(item->chunks[i].bytes);
	}
	free(item->chunks);
	item->chunks = NULL;
	item->chunk_count = 0;
}

void store_item_weigh(struct store_item *item)
{
	item->bytes = sizeof(*item) + item->text_capacity +
		      item->process_capacity * sizeof(*item->processes) +
		      item->sample_capacity * sizeof(*item->samples) +
		      item->site_count * sizeof(*item->sites) +
		      item->buffer_capacity * sizeof(*item->buffers) +
		      item->chunk_capacity * sizeof(*item->chunks) +
		      item->repeat_capacity * sizeof(*item->repeats);
	for (size_t i = 0; i < item->chunk_count; i++)
		item->bytes += item->chunks[i].length;
}

int store_item_add_long_text(struct store_item *item, const char *text, size_t length,
			     uint32_t *ret_at)
{
	char *texts = array_grow(item->texts, &item->text_capacity,
				 item->text_used + TEXT_CLEAN_SIZE(length), 1);

	if (!texts)
		return -ENOMEM;
	item->texts = texts;
	*ret_at = (uint32_t)item->text_used;
	item->text_used += text_clean(text, length, texts + item->text_used) + 1;
	return 0;
}

int store_item_add_text(struct store_item *item, const char *text, uint32_t *ret_at)
{
	size_t length;
	int r;

	if (!text || (!*text && item->text_used > 0)) {
		*ret_at = 0;
		return 0;
	}
	/* Adjacent rows mostly have the same name, and a snapshot holds each text only once. */
	if (text == item->text_last) {
		*ret_at = item->text_last_at;
		return 0;
	}
	length = strnlen(text, STORE_TEXT_MAX);
	r = store_item_add_long_text(item, text, length, ret_at);
	item->text_last = r == 0 ? text : NULL;
	item->text_last_at = r == 0 ? *ret_at : 0;
	return r;
}

int store_item_add_stack(struct store_item *item, const struct stack *stack, uint32_t *ret_at)
{
	char line[STACK_LINE];
	int r = store_item_add_text(item, stack_line(stack, line, sizeof(line)), ret_at);

	item->text_last = NULL; /* the next line is at the same address */
	return r;
}

int store_item_add_process(struct store_item *item, const struct snapshot_process *process)
{
	struct store_item_process *to = array_grow(item->processes, &item->process_capacity,
						   item->process_count + 1, sizeof(*to));
	int r;

	if (!to)
		return -ENOMEM;
	item->processes = to;
	to += item->process_count;
	*to = (struct store_item_process){
		.id = process->id,
		.ns_pid = process->ns_pid,
		.uid = process->user_id,
		.owner = process->maker_id,
		.start_ns = process->start_ns,
	};
	r = store_item_add_text(item, process->comm, &to->comm);
	if (r == 0)
		r = store_item_add_text(item, process->user, &to->user);
	if (r == 0)
		r = store_item_add_text(item, process->container, &to->container);
	if (r == 0)
		r = store_item_add_text(item, process->source, &to->source);
	if (r == 0)
		r = store_item_add_text(item, process->namespaces ? process->namespaces : "?",
					&to->namespaces);
	if (r == 0)
		item->process_count++;
	return r;
}

int store_item_add_sample(struct store_item *item, const struct store_item_sample *sample)
{
	struct store_item_sample *to = array_grow(item->samples, &item->sample_capacity,
						  item->sample_count + 1, sizeof(*to));

	if (!to)
		return -ENOMEM;
	item->samples = to;
	to[item->sample_count++] = *sample;
	return 0;
}

static int store_item_sample_devices(struct store_item *item, const struct snapshot *snapshot)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &device->memory[type];

			/* Memory that was never used has no history; memory no longer used does. */
			if (!memory->used && !memory->buffers && !memory->peak)
				continue;
			if (item->sample_count >= STORE_SAMPLES_MAX / 2) {
				item->cut++;
				continue;
			}
			r = store_item_add_sample(item, &(struct store_item_sample){
								.process = STORE_ITEM_NONE,
								.device = device->device,
								.device_uid = device->unique_id,
								.type = type,
								.used = memory->used,
								.buffers = memory->buffers,
							});
		}
	}
	return r;
}

static int store_item_sample_process(struct store_item *item, const struct snapshot *snapshot,
				     const struct snapshot_process *process)
{
	size_t most = item->sample_count + STORE_PROCESS_SAMPLES_MAX;
	int r = store_item_add_process(item, process);

	for (size_t i = 0; r == 0 && i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &part->memory[type];

			if (!memory->used && !memory->buffers && !memory->allocs)
				continue;
			if (item->sample_count >= bits_min(most, STORE_SAMPLES_MAX)) {
				item->cut++;
				continue;
			}
			r = store_item_add_sample(
				item, &(struct store_item_sample){
					      .process = (uint32_t)item->process_count - 1,
					      .device = snapshot->devices[part->row].device,
					      .device_uid = part->facts.unique_id,
					      .type = type,
					      .used = memory->used,
					      .buffers = memory->buffers,
				      });
		}
	}
	return r;
}

struct store_item *store_item_sample(const struct snapshot *snapshot)
{
	CLEANUP(store_item_cleanup)
	struct store_item *item = store_item_new(STORE_ITEM_SAMPLE, snapshot->time_ns);
	int r;

	if (!item)
		return NULL;
	r = store_item_sample_devices(item, snapshot);
	for (size_t i = 0; r == 0 && i < snapshot->process_count; i++) {
		if (snapshot->processes[i].alive)
			r = store_item_sample_process(item, snapshot, &snapshot->processes[i]);
	}
	if (r < 0)
		return NULL;
	store_item_weigh(item);
	return cleanup_steal(item);
}

static int store_item_add_party(struct store_item *item, const struct snapshot_party *party,
				struct store_item_party *ret_party)
{
	int r = 0;

	*ret_party = (struct store_item_party){.party = *party};
	if (party->known)
		r = store_item_add_text(item, party->name, &ret_party->name);
	if (r == 0 && party->known)
		r = store_item_add_text(item, party->phase, &ret_party->phase);
	if (r == 0 && party->known)
		r = store_item_add_stack(item, party->stack, &ret_party->stack);
	return r;
}

/* Both processes of an overlap, as the holders of the place. */
static int store_item_add_both(struct store_item *item, const struct snapshot *snapshot,
			       const struct snapshot_incident *incident)
{
	struct store_item_sample first = {
		.process = 1,
		.type = incident->type,
		.used = incident->first.size,
		.buffers = 1,
	};
	struct store_item_sample second = {
		.type = incident->type,
		.used = incident->second.size,
		.buffers = 1,
	};
	int r = store_item_add_process(item, &snapshot->processes[incident->other]);

	if (r == 0)
		r = store_item_add_sample(item, &first);
	return r < 0 ? r : store_item_add_sample(item, &second);
}

struct store_item *store_item_incident(const struct snapshot *snapshot,
				       const struct snapshot_incident *incident)
{
	const struct snapshot_part *part =
		snapshot_find_part(snapshot, incident->process, incident->device);
	CLEANUP(store_item_cleanup)
	struct store_item *item =
		store_item_new(STORE_ITEM_INCIDENT, bits_max(incident->last_ns, incident->time_ns));
	int r;

	if (!item)
		return NULL;
	item->incident = *incident;
	item->device_uid = part ? part->facts.unique_id : 0;
	r = store_item_add_process(item, &snapshot->processes[incident->process]);
	if (r == 0)
		r = store_item_add_text(item, incident->kind, &item->incident_kind);
	if (r == 0)
		r = store_item_add_text(item, incident->explanation, &item->explanation);
	if (r == 0)
		r = store_item_add_party(item, &incident->first, &item->first);
	if (r == 0)
		r = store_item_add_party(item, &incident->second, &item->second);
	if (r == 0 && incident->has_other)
		r = store_item_add_both(item, snapshot, incident);
	if (r < 0)
		return NULL;
	store_item_set_site(item);
	store_item_weigh(item);
	return cleanup_steal(item);
}
