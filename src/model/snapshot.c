/* SPDX-License-Identifier: Apache-2.0 */

/* Filling a snapshot; merge.c merges the devices. */

#include "model/snapshot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "model/cards/declared.h"
#include "model/merge.h"

struct snapshot *snapshot_new(uint64_t time_ns)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (!snapshot)
		return NULL;
	snapshot->refs = 1;
	snapshot->time_ns = time_ns;
	snapshot->exact = true;
	return snapshot;
}

struct snapshot *snapshot_ref(struct snapshot *snapshot)
{
	__atomic_add_fetch(&snapshot->refs, 1, __ATOMIC_RELAXED);
	return snapshot;
}

struct snapshot *snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot || __atomic_sub_fetch(&snapshot->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	for (size_t i = 0; i < snapshot->process_count; i++)
		free(snapshot->processes[i].parts);
	free(snapshot->processes);
	map_deinit(&snapshot->places);
	free(snapshot->devices);
	free(snapshot->buffers);
	free(snapshot->incidents);
	free(snapshot->peaks);
	free(snapshot->cards);
	free(snapshot->claims);
	free(snapshot->driver_memory);
	free(snapshot->left);
	free(snapshot->notes);
	pool_deinit(&snapshot->texts);
	free(snapshot);
	return NULL;
}

const char *snapshot_text(struct snapshot *snapshot, const char *bytes, size_t length)
{
	return bytes ? pool_text(&snapshot->texts, bytes, length) : NULL;
}

static void snapshot_merge_process(struct snapshot_process *process,
				   const struct snapshot_process *more)
{
	uint64_t *to = (uint64_t *)&process->rejected;
	const uint64_t *from = (const uint64_t *)&more->rejected;

	for (size_t i = 0; i < sizeof(process->rejected) / sizeof(*to); i++)
		to[i] += from[i];
	process->exact = process->exact && more->exact;
	process->last_ns = bits_max(process->last_ns, more->last_ns);
	process->books++;
}

struct snapshot_process *snapshot_next_process(const struct snapshot *snapshot,
					       struct snapshot_search *search)
{
	uint32_t number = map_find(&snapshot->places, search->pid, search->steps);

	if (!number)
		return NULL;
	search->steps++;
	return &snapshot->processes[number - 1];
}

static struct snapshot_process *snapshot_find(const struct snapshot *snapshot, struct process_id id,
					      bool living)
{
	struct snapshot_search search = {.pid = id.pid};
	struct snapshot_process *process;

	while ((process = snapshot_next_process(snapshot, &search))) {
		if (process_id_equal(process->id, id) && (process->alive || !living))
			break;
	}
	return process;
}

struct snapshot_process *snapshot_find_process(const struct snapshot *snapshot,
					       struct process_id id)
{
	return snapshot_find(snapshot, id, false);
}

struct snapshot_process *snapshot_find_living(const struct snapshot *snapshot, struct process_id id)
{
	return snapshot_find(snapshot, id, true);
}

int snapshot_add_process(struct snapshot *snapshot, const struct snapshot_process *identity,
			 uint32_t *ret_index)
{
	struct snapshot_search search = {.pid = identity->id.pid};
	struct snapshot_process *process;
	uint32_t number;

	while ((process = snapshot_next_process(snapshot, &search))) {
		if (process_id_equal(process->id, identity->id) &&
		    process->alive == identity->alive && process->user_id == identity->user_id) {
			snapshot_merge_process(process, identity);
			*ret_index = (uint32_t)(process - snapshot->processes);
			return 0;
		}
	}
	process = array_grow(snapshot->processes, &snapshot->process_capacity,
			     snapshot->process_count + 1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	snapshot->processes = process;
	if (map_add(&snapshot->places, identity->id.pid, search.steps, &number) < 0)
		return -ENOMEM;
	process += snapshot->process_count;
	*process = *identity;
	process->parts = NULL;
	process->part_count = process->part_capacity = 0;
	process->books = 1;
	*ret_index = (uint32_t)snapshot->process_count++;
	return 0;
}

/* The parts of one device each: a sum is behind them. */
static size_t snapshot_singles(const struct snapshot_process *process)
{
	size_t count = process->part_count;

	return count && process->parts[count - 1].summed ? count - 1 : count;
}

static int snapshot_compare_part(const void *key, const void *element)
{
	const uint32_t *device = key;
	const struct snapshot_part *part = element;

	return (*device > part->device) - (*device < part->device);
}

/* By binary search where possible: a process may have a thousand. */
static struct snapshot_part *snapshot_existing_part(const struct snapshot *snapshot,
						    uint32_t process, uint32_t device)
{
	const struct snapshot_process *owner = &snapshot->processes[process];
	size_t count = snapshot_singles(owner);

	if (count && !owner->is_unsorted)
		return bsearch(&device, owner->parts, count, sizeof(*owner->parts),
			       snapshot_compare_part);
	for (size_t i = 0; i < count; i++) {
		if (owner->parts[i].device == device)
			return &owner->parts[i];
	}
	return NULL;
}

const struct snapshot_part *snapshot_find_part(const struct snapshot *snapshot, uint32_t process,
					       uint32_t device)
{
	return snapshot_existing_part(snapshot, process, device);
}

uint64_t snapshot_part_uid(const struct snapshot *snapshot, uint32_t process, uint32_t device)
{
	const struct snapshot_part *part = snapshot_find_part(snapshot, process, device);

	return part ? part->facts.unique_id : 0;
}

bool snapshot_find_row(const struct snapshot *snapshot, uint32_t process, uint32_t device,
		       uint32_t *ret_row)
{
	const struct snapshot_part *part = snapshot_existing_part(snapshot, process, device);
	const struct snapshot_process *owner = &snapshot->processes[process];
	uint32_t found = 0;

	/* Behind all others. */
	if (!part && owner->part_count && owner->parts[owner->part_count - 1].summed)
		part = &owner->parts[owner->part_count - 1];

	if (part) {
		*ret_row = part->row;
		return true;
	}
	for (uint32_t i = 0; i < snapshot->device_count; i++) {
		if (snapshot->devices[i].device != device)
			continue;
		found++;
		*ret_row = i;
	}
	return found == 1;
}

struct snapshot_part *snapshot_part(struct snapshot *snapshot, uint32_t process, uint32_t device)
{
	struct snapshot_part *found = snapshot_existing_part(snapshot, process, device);

	return found ? found : snapshot_add_part(snapshot, process, device);
}

struct snapshot_part *snapshot_add_part(struct snapshot *snapshot, uint32_t process,
					uint32_t device)
{
	struct snapshot_process *owner = &snapshot->processes[process];
	struct snapshot_part *part;
	size_t at;

	part = array_grow(owner->parts, &owner->part_capacity, owner->part_count + 1,
			  sizeof(*part));
	if (!part)
		return NULL;
	owner->parts = part;
	at = snapshot_singles(owner);
	owner->is_unsorted = owner->is_unsorted || (at && part[at - 1].device >= device);
	if (at < owner->part_count)
		part[at + 1] = part[at];
	owner->part_count++;
	part += at;
	*part = (struct snapshot_part){.device = device};
	return part;
}

int snapshot_add_sum(struct snapshot *snapshot, uint32_t process, const struct snapshot_part *sum)
{
	struct snapshot_process *owner = &snapshot->processes[process];
	struct snapshot_part *parts = array_grow(owner->parts, &owner->part_capacity,
						 owner->part_count + 1, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	owner->parts = parts;
	if (snapshot_singles(owner) < owner->part_count)
		declared_add(&parts[owner->part_count - 1], sum);
	else
		parts[owner->part_count++] = *sum;
	return 0;
}

void snapshot_process_totals(const struct snapshot_process *process, uint64_t *ret_bytes,
			     uint64_t *ret_buffers)
{
	uint64_t bytes = 0, buffers = 0;

	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			bytes = merge_add(bytes, process->parts[i].memory[type].used);
			buffers = merge_add(buffers, process->parts[i].memory[type].buffers);
		}
	}
	*ret_bytes = bytes;
	*ret_buffers = buffers;
}

void snapshot_add_memory(struct snapshot_memory *to, const struct snapshot_memory *more)
{
	if (to->peak && more->peak)
		to->peak_is_unknown = true;
	to->used = merge_add(to->used, more->used);
	to->buffers = merge_add(to->buffers, more->buffers);
	merge_occupied(&to->occupied, &more->occupied, more->buffers, more->used);
	to->peak = merge_add(to->peak, more->peak);
	to->allocs = merge_add(to->allocs, more->allocs);
	to->frees = merge_add(to->frees, more->frees);
	to->allocs_before = merge_add(to->allocs_before, more->allocs_before);
	to->frees_before = merge_add(to->frees_before, more->frees_before);
	to->unknown_frees = merge_add(to->unknown_frees, more->unknown_frees);
	to->double_frees = merge_add(to->double_frees, more->double_frees);
	to->size_changes = merge_add(to->size_changes, more->size_changes);
	to->realloc_live = merge_add(to->realloc_live, more->realloc_live);
	to->ambiguous_frees = merge_add(to->ambiguous_frees, more->ambiguous_frees);
	to->unplaced_frees = merge_add(to->unplaced_frees, more->unplaced_frees);
	to->hooked = merge_add(to->hooked, more->hooked);
	to->overflow_frees = merge_add(to->overflow_frees, more->overflow_frees);
	to->last_ns = bits_max(to->last_ns, more->last_ns);
	to->bound = merge_bound(to->bound, more->bound);
}

int snapshot_add_buffer(struct snapshot *snapshot, const struct snapshot_buffer *buffer)
{
	struct snapshot_buffer *buffers;

	if (snapshot->buffer_count >= SNAPSHOT_BUFFERS_MAX) {
		if (snapshot->exact)
			snapshot_note(snapshot,
				      "more than %u buffers: the list is cut; ask for one "
				      "process or device",
				      SNAPSHOT_BUFFERS_MAX);
		snapshot->exact = false;
		return -ENOBUFS;
	}
	buffers = array_grow(snapshot->buffers, &snapshot->buffer_capacity,
			     snapshot->buffer_count + 1, sizeof(*buffers));
	if (!buffers)
		return -ENOMEM;
	snapshot->buffers = buffers;
	buffers[snapshot->buffer_count++] = *buffer;
	return 0;
}

uint64_t snapshot_buffer_bytes(const struct snapshot_buffer *buffer)
{
	return buffer->flags & SNAPSHOT_FLAG_ALIAS ? 0 : buffer->size;
}

void snapshot_drop_empty(struct snapshot *snapshot)
{
	size_t kept = 0;

	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		struct snapshot_part *part;

		if (snapshot_buffer_bytes(buffer) > 0) {
			snapshot->buffers[kept++] = *buffer;
			continue;
		}
		part = snapshot_existing_part(snapshot, buffer->process, buffer->device);
		if (part && part->memory[buffer->type].buffers > 0)
			part->memory[buffer->type].buffers--;
	}
	snapshot->buffer_count = kept;
}

int snapshot_add_incident(struct snapshot *snapshot, const struct snapshot_incident *incident)
{
	struct snapshot_incident *incidents;

	if (snapshot->incident_count >= SNAPSHOT_INCIDENTS_MAX) {
		if (snapshot->exact)
			snapshot_note(snapshot, "more than %u incidents: the list is cut",
				      SNAPSHOT_INCIDENTS_MAX);
		snapshot->exact = false;
		return -ENOBUFS;
	}
	incidents = array_grow(snapshot->incidents, &snapshot->incident_capacity,
			       snapshot->incident_count + 1, sizeof(*incidents));
	if (!incidents)
		return -ENOMEM;
	snapshot->incidents = incidents;
	incidents[snapshot->incident_count++] = *incident;
	return 0;
}

int snapshot_add_card(struct snapshot *snapshot, const struct snapshot_card *card)
{
	struct snapshot_card *cards;

	if (snapshot->card_count >= SNAPSHOT_CARDS_MAX) {
		snapshot_note(snapshot, "more than %u cards: the rest is left out",
			      SNAPSHOT_CARDS_MAX);
		return -ENOBUFS;
	}
	cards = array_grow(snapshot->cards, &snapshot->card_capacity, snapshot->card_count + 1,
			   sizeof(*cards));
	if (!cards)
		return -ENOMEM;
	snapshot->cards = cards;
	cards[snapshot->card_count++] = *card;
	return 0;
}

int snapshot_add_claim(struct snapshot *snapshot, const struct snapshot_claim *claim)
{
	struct snapshot_claim *claims;

	if (snapshot->claim_count >= SNAPSHOT_CLAIMS_MAX) {
		snapshot_note(snapshot, "regions and driver name more than %u users of devices",
			      SNAPSHOT_CLAIMS_MAX);
		snapshot->exact = false;
		return -ENOBUFS;
	}
	claims = array_grow(snapshot->claims, &snapshot->claim_capacity, snapshot->claim_count + 1,
			    sizeof(*claims));
	if (!claims)
		return -ENOMEM;
	snapshot->claims = claims;
	claims[snapshot->claim_count++] = *claim;
	return 0;
}

int snapshot_add_driver_memory(struct snapshot *snapshot,
			       const struct snapshot_driver_memory *memory)
{
	struct snapshot_driver_memory *list;

	if (snapshot->driver_memory_count >= SNAPSHOT_CLAIMS_MAX) {
		snapshot_note(snapshot, "the driver names more than %u users of cards",
			      SNAPSHOT_CLAIMS_MAX);
		return -ENOBUFS;
	}
	list = array_grow(snapshot->driver_memory, &snapshot->driver_memory_capacity,
			  snapshot->driver_memory_count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	snapshot->driver_memory = list;
	list[snapshot->driver_memory_count++] = *memory;
	return 0;
}

int snapshot_add_left(struct snapshot *snapshot, const struct snapshot_left *left)
{
	struct snapshot_left *list = array_grow(snapshot->left, &snapshot->left_capacity,
						snapshot->left_count + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	snapshot->left = list;
	list[snapshot->left_count++] = *left;
	return 0;
}

void snapshot_note(struct snapshot *snapshot, const char *format, ...)
{
	const char **notes;
	char line[512];
	va_list arguments;

	if (snapshot->note_count >= SNAPSHOT_NOTES_MAX) {
		snapshot->notes_lost++;
		return;
	}
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	notes = array_grow(snapshot->notes, &snapshot->note_capacity, snapshot->note_count + 1,
			   sizeof(*notes));
	if (!notes) {
		snapshot->notes_lost++;
		return;
	}
	snapshot->notes = notes;
	notes[snapshot->note_count] = snapshot_text(snapshot, line, strlen(line));
	if (notes[snapshot->note_count])
		snapshot->note_count++;
	else
		snapshot->notes_lost++;
}

/* The last criterion of every comparison, so that the same state always has the same order. */
static int snapshot_compare_keys(const struct snapshot_buffer *a, const struct snapshot_buffer *b)
{
	if (a->process != b->process)
		return bits_compare(a->process, b->process);
	if (a->device != b->device)
		return bits_compare(a->device, b->device);
	if (a->address != b->address)
		return bits_compare(a->address, b->address);
	return bits_compare(a->type, b->type);
}

static int snapshot_compare_sizes(const void *left, const void *right)
{
	const struct snapshot_buffer *a = left, *b = right;

	if (a->size != b->size)
		return bits_compare(b->size, a->size);
	return snapshot_compare_keys(a, b);
}

static int snapshot_compare_ages(const void *left, const void *right)
{
	const struct snapshot_buffer *a = left, *b = right;

	if (a->born_ns != b->born_ns)
		return bits_compare(a->born_ns, b->born_ns);
	return snapshot_compare_keys(a, b);
}

static int snapshot_compare_places(const void *left, const void *right)
{
	return snapshot_compare_keys(left, right);
}

static int (*snapshot_comparison(enum snapshot_order order))(const void *, const void *)
{
	if (order == SNAPSHOT_BY_PLACE)
		return snapshot_compare_places;
	return order == SNAPSHOT_BY_AGE ? snapshot_compare_ages : snapshot_compare_sizes;
}

int snapshot_compare_buffers(const struct snapshot_buffer *a, const struct snapshot_buffer *b,
			     enum snapshot_order order)
{
	return snapshot_comparison(order)(a, b);
}

void snapshot_sort_buffers(struct snapshot *snapshot, enum snapshot_order order)
{
	if (snapshot->buffer_count > 0)
		qsort(snapshot->buffers, snapshot->buffer_count, sizeof(*snapshot->buffers),
		      snapshot_comparison(order));
}
