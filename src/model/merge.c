/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Merging devices: all parts are sorted by their identity, and each run of equals becomes a row.
 * Sorting, because a hostile process may declare a thousand devices with made-up ids.
 *
 * Only living processes count into used, buffers and peak. Of one user's processes that declare
 * different facts about a device the one that started first wins, living before dead; others fill
 * gaps. What two users declare differently is not known: nobody's word is taken for everybody.
 */

#include "model/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/cards/card.h"
#include "model/cards/join.h"
#include "model/snapshot.h"
#include "model/types.h"

struct merge_entry {
	struct snapshot_part *part;
	const struct snapshot_process *process;
};

uint32_t merge_bound(uint32_t a, uint32_t b)
{
	/*
	 * A lower and an upper bound together bound nothing. The lower one is reported, because
	 * lost allocations mislead users more; the processes' own bounds stay.
	 */
	if (a == b || b == SNAPSHOT_EXACT)
		return a;
	return a == SNAPSHOT_EXACT ? b : SNAPSHOT_AT_LEAST;
}

static int merge_compare_identity(const struct snapshot_part *a, const struct snapshot_part *b)
{
	uint64_t x = a->facts.unique_id, y = b->facts.unique_id;

	if (a->card != b->card)
		return bits_compare(a->card, b->card);
	if (a->card != SNAPSHOT_NO_CARD)
		return 0;
	if (x == 0 && y == 0) {
		x = a->device;
		y = b->device;
	}
	return bits_compare(x, y);
}

/* Equals are in order of precedence. */
static int merge_compare(const void *left, const void *right)
{
	const struct merge_entry *a = left, *b = right;
	const struct snapshot_process *p = a->process, *q = b->process;
	int r = merge_compare_identity(a->part, b->part);

	if (r)
		return r;
	if (p->alive != q->alive)
		return bits_compare(q->alive, p->alive);
	if (p->id.start_ticks != q->id.start_ticks)
		return bits_compare(p->id.start_ticks, q->id.start_ticks);
	return bits_compare(p->id.pid, q->id.pid);
}

static int merge_compare_rows(const void *left, const void *right)
{
	const struct snapshot_device *a = left, *b = right;

	if (a->device != b->device)
		return bits_compare(a->device, b->device);
	return bits_compare(a->unique_id, b->unique_id);
}

/* A fact about a device, from those who declare it. */
struct merge_word {
	const struct snapshot_process *by; /* the first; NULL = nobody */
	bool is_disputed;                  /* another user says otherwise */
};

struct merge_facts {
	struct merge_word arch, card, remote, capacity[BOOK_TYPES];
	const struct snapshot_process *by; /* who declared any of it first */
	bool is_shared;                    /* another user has declared the device too */
};

/* Whether to take what @entry's process says; @is_same: it says what is known. */
static bool merge_hear(struct merge_word *word, const struct merge_entry *entry, bool is_same)
{
	if (!word->by) {
		word->by = entry->process;
		return true;
	}
	if (!is_same && entry->process->alive == word->by->alive &&
	    entry->process->user_id != word->by->user_id)
		word->is_disputed = true;
	return false;
}

static void merge_text(struct merge_word *word, const struct merge_entry *entry, const char *text,
		       const char **known)
{
	if (text && merge_hear(word, entry, *known && strcmp(*known, text) == 0))
		*known = text;
}

static void merge_capacity(struct snapshot *snapshot, struct merge_word *word,
			   const struct merge_entry *entry, uint32_t type,
			   struct snapshot_memory *memory)
{
	uint64_t capacity = entry->part->facts.capacity[type];

	if (!capacity)
		return;
	if (memory->capacity && memory->capacity != capacity && entry->process->alive)
		snapshot_note(snapshot,
			      "device %" PRIu32 ": pid %" PRIu32 " declares another %s capacity "
			      "than an earlier process",
			      entry->part->device, entry->process->id.pid, types_name(type));
	if (merge_hear(word, entry, memory->capacity == capacity)) {
		memory->capacity = capacity;
		memory->window = entry->part->facts.windows[type];
	}
}

static void merge_declared(struct snapshot *snapshot, struct merge_facts *words,
			   const struct merge_entry *entry, struct snapshot_device *row)
{
	const struct snapshot_facts *facts = &entry->part->facts;

	merge_text(&words->arch, entry, facts->arch, &row->arch);
	merge_text(&words->card, entry, facts->card, &row->card);
	/* A region tells it too. */
	if ((facts->declared || facts->remote) &&
	    merge_hear(&words->remote, entry, row->remote == facts->remote))
		row->remote = facts->remote;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		merge_capacity(snapshot, &words->capacity[type], entry, type, &row->memory[type]);
	if (!facts->declared && !entry->part->summed)
		return;
	if (!words->by)
		words->by = entry->process;
	else if (words->by->user_id != entry->process->user_id)
		words->is_shared = true;
}

/* Takes back what users do not agree on. */
static void merge_judge(const struct merge_facts *words, struct snapshot_device *row)
{
	if (words->arch.is_disputed)
		row->arch = NULL;
	if (words->card.is_disputed)
		row->card = NULL;
	if (words->remote.is_disputed)
		row->remote = false;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (!words->capacity[type].is_disputed)
			continue;
		row->memory[type].capacity = 0;
		row->memory[type].window = (struct snapshot_window){0};
	}
	if (words->by && !words->is_shared) {
		row->declared_by = words->by->user;
		row->declarer_id = words->by->user_id;
	}
}

static void merge_memory(struct snapshot_device *row, const struct snapshot_part *part)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		struct snapshot_memory *to = &row->memory[type];
		const struct snapshot_memory *from = &part->memory[type];

		snapshot_add_memory(to, from);
		/* Two processes' peaks need not coincide in time. */
		to->peak_is_unknown = from->peak_is_unknown || row->processes > 1;
		to->peak = to->peak_is_unknown ? 0 : from->peak;
	}
}

static void merge_row(struct snapshot *snapshot, const struct merge_entry *entries, size_t count,
		      struct snapshot_device *ret_row)
{
	struct snapshot_device *row = ret_row;
	struct merge_facts words = {0};
	bool open = false;

	*row = (struct snapshot_device){
		.device = entries[0].part->device,
		.unique_id = entries[0].part->facts.unique_id,
		.by_number = entries[0].part->facts.unique_id == 0,
	};
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		row->memory[type].peak_is_unknown = true;
	for (size_t i = 0; i < count; i++) {
		const struct snapshot_part *part = entries[i].part;

		row->device = (uint32_t)bits_min(row->device, part->device);
		row->summed += part->summed;
		merge_declared(snapshot, &words, &entries[i], row);
		row->stale += entries[i].process->stale;
		if (!entries[i].process->alive)
			continue;
		open = open || !part->facts.closed_ns;
		if (entries[i].process->untracked) {
			row->untracked++;
			continue;
		}
		if (part->before_reset) {
			row->before_reset++;
			continue;
		}
		row->processes++;
		row->joined = row->is_joined ? (uint32_t)bits_max(row->joined, part->joined)
					     : part->joined;
		row->is_joined = true;
		merge_memory(row, part);
	}
	row->closed = !open;
	merge_judge(&words, row);
}

/* All parts, sorted by identity. */
static struct merge_entry *merge_collect(struct snapshot *snapshot, size_t *ret_count)
{
	struct merge_entry *entries;
	size_t count = 0, n = 0;

	for (size_t i = 0; i < snapshot->process_count; i++)
		count += snapshot->processes[i].part_count;
	entries = calloc(count + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++)
			entries[n++] = (struct merge_entry){&process->parts[k], process};
	}
	qsort(entries, count, sizeof(*entries), merge_compare);
	*ret_count = count;
	return entries;
}

/* Sorts rows into the order in which users count devices; the parts' rows are updated. */
static int merge_sort_rows(struct snapshot *snapshot, const struct merge_entry *entries,
			   size_t count)
{
	CLEANUP_FREE uint32_t *place = calloc(snapshot->device_count + 1, sizeof(*place));

	if (!place)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->device_count; i++)
		snapshot->devices[i].origin = (uint32_t)i;
	qsort(snapshot->devices, snapshot->device_count, sizeof(*snapshot->devices),
	      merge_compare_rows);
	for (size_t i = 0; i < snapshot->device_count; i++)
		place[snapshot->devices[i].origin] = (uint32_t)i;
	for (size_t i = 0; i < count; i++)
		entries[i].part->row = place[entries[i].part->row];
	return 0;
}

/*
 * The driver's word about a card that is there wins over what processes declare, which anybody can.
 * They know better only how much of its memory they can use.
 */
static void merge_card(struct snapshot *snapshot, struct snapshot_device *row,
		       const struct snapshot_card *card)
{
	const struct card_facts *facts = card_find(card->card);

	if (row->remote || (row->arch && card->arch && strcmp(row->arch, card->arch) != 0) ||
	    (row->card && card->card && strcmp(row->card, card->card) != 0))
		snapshot_note(snapshot,
			      "device %" PRIu32
			      ": a process declares another card than the driver's %s",
			      card->number, card->card ? card->card : "");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		uint64_t most = card_capacity(facts, type);

		if (!most || row->memory[type].capacity <= most)
			continue;
		snapshot_note(snapshot,
			      "device %" PRIu32 ": a process declares more %s than a %s has",
			      card->number, types_name(type), card->card);
		row->memory[type].capacity = most;
		row->memory[type].window = (struct snapshot_window){0};
	}
	if (card->arch)
		row->arch = card->arch;
	if (card->card)
		row->card = card->card;
	row->remote = false;
	row->declared_by = NULL; /* the driver says what it is */
	row->present = card->condition.state != SNAPSHOT_GONE;
	row->condition = card->condition;
	row->closed = row->closed && !card->condition.outside && !card->condition.ended;
	row->device = row->number = card->number;
	row->serial = card->serial;
	row->bus = card->bus;
	row->firmware = card->firmware;
	row->telemetry = card->telemetry;
}

/* A card that no process has. */
static struct snapshot_device merge_idle(uint64_t unique_id)
{
	struct snapshot_device row = {
		.unique_id = unique_id, .by_number = unique_id == 0, .closed = true};

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		row.memory[type].peak_is_unknown = true;
	return row;
}

/* Gives each of the driver's cards its row, or a new one. Rows of cards come first, in their order. */
static void merge_cards(struct snapshot *snapshot, const struct merge_entry *entries, size_t count,
			const struct join *join)
{
	size_t at = 0;

	for (size_t i = 0; i < snapshot->card_count; i++) {
		struct snapshot_device *row;

		while (at < count && entries[at].part->card < i)
			at++;
		if (at < count && entries[at].part->card == i) {
			row = &snapshot->devices[entries[at].part->row];
		} else {
			row = &snapshot->devices[snapshot->device_count++];
			*row = merge_idle(join_card_id(join, i));
		}
		merge_card(snapshot, row, &snapshot->cards[i]);
	}
}

/* A chip without a node is of the same kind as those of its board that have one. */
static void merge_boards(struct snapshot *snapshot, const struct join *join)
{
	for (size_t i = 0; snapshot->card_count && i < snapshot->device_count; i++) {
		struct snapshot_device *row = &snapshot->devices[i];
		const struct snapshot_card *card =
			row->card || row->bus ? NULL : join_board(join, row->unique_id);

		if (!card)
			continue;
		row->card = card->card;
		if (!row->arch)
			row->arch = card->arch;
	}
}

/* Fills in from the card's name what no process has declared. */
static void merge_table(struct snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->device_count; i++) {
		struct snapshot_device *row = &snapshot->devices[i];
		const struct card_facts *facts = card_find(row->card);

		if (!facts)
			continue;
		row->cores = facts->cores;
		if (!row->arch)
			row->arch = facts->arch;
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			if (!row->memory[type].capacity)
				row->memory[type].capacity = card_capacity(facts, type);
		}
	}
}

int merge_devices(struct snapshot *snapshot, const struct join *join)
{
	CLEANUP_FREE struct merge_entry *entries = NULL;
	struct snapshot_device *rows;
	size_t count = 0, n = 0;

	entries = merge_collect(snapshot, &count);
	rows = array_grow(snapshot->devices, &snapshot->device_capacity,
			  count + snapshot->card_count + 1, sizeof(*rows));
	if (rows)
		snapshot->devices = rows;
	if (!entries || !rows)
		return -ENOMEM;

	for (size_t i = 0; i < count; n++) {
		size_t end = i + 1;

		while (end < count &&
		       merge_compare_identity(entries[i].part, entries[end].part) == 0)
			end++;
		merge_row(snapshot, entries + i, end - i, &rows[n]);
		for (; i < end; i++)
			entries[i].part->row = (uint32_t)n;
	}
	snapshot->device_count = n;
	merge_cards(snapshot, entries, count, join);
	merge_boards(snapshot, join);
	merge_table(snapshot);
	return merge_sort_rows(snapshot, entries, count);
}
