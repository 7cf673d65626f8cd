/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events come in the order of time. What the recording does not have as events, because it began
 * later or missed some, is taken from the book as it was then: what is gone is freed, and what is new
 * is allocated in the order of birth. That is not what happened, so it is counted and said.
 */

#include "cli/replay/replay-walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "book/format/words.h"
#include "book/read/view.h"
#include "cli/common/must.h"
#include "model/cards/card.h"
#include "model/types.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

void replay_walk_deinit(struct replay_walk *walk)
{
	size_t books = walk->books ? recording_facts(walk->recording)->books : 0;

	for (size_t i = 0; i < books; i++) {
		stacks_free(walk->books[i].stacks);
		scan_book_free(walk->books[i].book);
	}
	for (size_t i = 0; i < walk->count; i++) {
		refit_free(walk->devices[i].refit);
		free(walk->devices[i].births);
	}
	free(walk->books);
	free(walk->devices);
	pool_deinit(&walk->texts);
	walk->books = NULL;
	walk->devices = NULL;
	walk->count = 0;
}

static int replay_open_book(struct replay_walk *walk, size_t number,
			    const struct recording_moment *end)
{
	struct replay_book *book = &walk->books[number];
	int r = recording_restore(walk->recording, number, end, &book->book);

	if (r == -ENOENT || r == -EBADMSG)
		return 0; /* it has no events either, or they cannot be read */
	return r < 0 ? r : stacks_new(&book->stacks, book->book, recording_namer(walk->recording));
}

static int replay_open_books(struct replay_walk *walk)
{
	const struct recording_filter all = RECORDING_FILTER_ALL;
	size_t count = recording_facts(walk->recording)->books;
	char why[RECORDING_WHY_SIZE];
	struct recording_moment end;
	int r = recording_find(walk->recording, "end", &all, &end, why);

	walk->books = must_alloc(count + 1, sizeof(*walk->books));
	for (size_t i = 0; r == 0 && i < count; i++)
		r = replay_open_book(walk, i, &end);
	return r;
}

/* NULL = none. */
static const char *replay_text(struct replay_walk *walk, const char *bytes, size_t length)
{
	return length ? must_have(pool_text(&walk->texts, bytes, length)) : NULL;
}

/* What the process has declared of its device; nothing if it has not. */
static struct snapshot_facts replay_declared(struct replay_walk *walk, struct reader *reader,
					     struct replay_device *device)
{
	struct snapshot_facts facts = {0};
	struct book_device declared;

	if (reader_device(reader, device->device, &declared) < 0)
		return facts;
	device->card =
		replay_text(walk, declared.card, strnlen(declared.card, sizeof(declared.card)));
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_memory *memory = &declared.memory[type];

		facts.windows[type] = (struct snapshot_window){
			.base = memory->bank_base,
			.size = memory->bank_size,
			.banks = memory->banks,
			.alignment = memory->alignment,
		};
	}
	return facts;
}

/* -ENODATA: its book cannot be read. */
static int replay_add_device(struct replay_walk *walk, const struct recording_event *event)
{
	const struct recording_book *owner = &recording_owner(walk->recording, event->book)->book;
	struct scan_book *book = walk->books[event->book].book;
	struct replay_device *device;
	struct refit_rules rules = {.fit = walk->fit};
	struct refit_card card = walk->card;
	struct snapshot_facts facts;

	if (!book)
		return -ENODATA;
	must_grow(walk->devices, &walk->capacity, walk->count + 1);
	device = &walk->devices[walk->count];
	*device = (struct replay_device){
		.book = (uint32_t)event->book,
		.device = event->device,
		.pid = owner->pid,
		.comm = must_have(pool_text(&walk->texts, owner->comm,
					    strnlen(owner->comm, sizeof(owner->comm)))),
		.facts = walk->facts,
	};
	facts = replay_declared(walk, &book->reader, device);
	/* Who has opened a card knows it better than the table. */
	if (walk->card_name && device->card && strcmp(walk->card_name, device->card) == 0)
		card.facts = NULL;
	/* And where it was recorded, if nobody declared it, may have a name. */
	else if (!walk->card_name && !facts.windows[0].size)
		card.facts = card_find(device->card);
	refit_rules_init(&rules, &facts, &card);
	device->assumes_l1 = rules.assumes_l1;
	device->refit = must_have(refit_new(&rules));
	walk->count++;
	return 0;
}

static bool replay_is_of(const struct replay_device *device, const struct recording_event *event)
{
	return device->book == event->book && device->device == event->device;
}

/* There are few of them, and most often it is the same one again. The index, or a negative errno. */
static int64_t replay_find_device(struct replay_walk *walk, const struct recording_event *event,
				  bool *ret_is_new)
{
	int r;

	*ret_is_new = false;
	if (walk->last < walk->count && replay_is_of(&walk->devices[walk->last], event))
		return (int64_t)walk->last;
	for (walk->last = 0; walk->last < walk->count; walk->last++) {
		if (replay_is_of(&walk->devices[walk->last], event))
			return (int64_t)walk->last;
	}
	r = replay_add_device(walk, event);
	*ret_is_new = true;
	return r < 0 ? r : (int64_t)walk->last;
}

static void replay_note_birth(struct replay_device *device, uint32_t slot, uint64_t birth)
{
	if (slot >= device->slots) {
		if (!birth)
			return;
		must_grow(device->births, &device->capacity, (size_t)slot + 1);
		memset(&device->births[device->slots], 0,
		       ((size_t)slot + 1 - device->slots) * sizeof(*device->births));
		device->slots = (size_t)slot + 1;
	}
	device->births[slot] = birth;
}

static struct refit_buffer replay_buffer(struct replay_walk *walk,
					 const struct replay_device *device,
					 const struct book_record *record)
{
	return (struct refit_buffer){
		.type = book_meta_type(record->meta),
		.space = book_space(record->thread_space),
		.flags = book_meta_flags(record->meta),
		.address = record->address,
		.size = record->size,
		.shape = reader_shape(&walk->books[device->book].book->reader, record->shape),
	};
}

static const char *replay_string(struct replay_walk *walk, struct reader *reader, uint32_t id)
{
	size_t length = 0;
	const char *bytes = id ? reader_string(reader, id, &length) : NULL;

	return bytes ? replay_text(walk, bytes, length) : NULL;
}

/* 0, REFIT_FAILED, which is noted, or a negative errno. */
static int replay_take(struct replay_walk *walk, size_t index, uint32_t slot,
		       const struct book_record *record, const struct recording_event *event)
{
	struct replay_device *device = &walk->devices[index];
	struct refit_buffer buffer = replay_buffer(walk, device, record);
	struct refit_failure failure;
	int r = refit_take(device->refit, slot, &buffer, event->time_ns, &failure);

	if (r == REFIT_FAILED) {
		struct replay_book *book = &walk->books[device->book];

		walk->has_failed = true;
		walk->failed = (struct replay_failed){
			.owner = device,
			.time_ns = event->time_ns,
			.at_ns = event->time_ns - bits_min(event->time_ns, device->facts->start_ns),
			.number = event->number,
			.stack = stacks_get(book->stacks, record->stack),
			.name = replay_string(walk, &book->book->reader, record->name),
			.phase = replay_string(walk, &book->book->reader, record->phase),
			.buffer = buffer,
			.failure = failure,
		};
	}
	if (r == 0)
		replay_note_birth(device, slot, record->birth | 1);
	return r;
}

static void replay_give(struct replay_device *device, uint32_t slot)
{
	must_not_lack(refit_give(device->refit, slot));
	replay_note_birth(device, slot, 0);
}

/* A buffer that is there, and no event has told of it. */
struct replay_found {
	uint32_t slot;
	struct book_record record;
};

static int replay_compare_found(const void *left, const void *right)
{
	const struct replay_found *a = left, *b = right;

	return bits_compare(a->record.birth, b->record.birth);
}

/* Frees what is no longer there, and lists what is new. Return: the length of the list. */
static size_t replay_compare_tables(struct replay_device *device, const struct view *view,
				    struct replay_found *found)
{
	CLEANUP_FREE bool *is_there = must_alloc(device->slots + 1, sizeof(*is_there));
	struct view_iterator it = {0};
	size_t count = 0;

	while (view_next(view, &it)) {
		uint32_t slot = view_slot(&it);

		if (slot < device->slots && device->births[slot] == (it.record->birth | 1))
			is_there[slot] = true;
		else
			found[count++] = (struct replay_found){slot, *it.record};
	}
	for (size_t slot = 0; slot < device->slots; slot++) {
		if (!is_there[slot] && device->births[slot])
			replay_give(device, (uint32_t)slot);
	}
	return count;
}

/* The table as it is in a book: brings the allocator to it. */
static int replay_take_table(struct replay_walk *walk, size_t index, const struct view *view,
			     const struct recording_event *event)
{
	CLEANUP_FREE struct replay_found *found = must_alloc(view->live + 1, sizeof(*found));
	size_t count = replay_compare_tables(&walk->devices[index], view, found);
	int r = 0;

	if (count > 0)
		qsort(found, count, sizeof(*found), replay_compare_found);
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = replay_take(walk, index, found[i].slot, &found[i].record, event);
		walk->from_table++;
	}
	if (r == REFIT_FAILED)
		walk->failed.is_from_table = true;
	return r;
}

/* As the device was after its event @number. */
static int replay_resume(struct replay_walk *walk, size_t index,
			 const struct recording_event *event, uint64_t number)
{
	CLEANUP(scan_book_cleanup) struct scan_book *book = NULL;
	CLEANUP(view_deinit) struct view view = VIEW_NULL;
	const struct recording_moment moment = {
		.time_ns = event->time_ns,
		.book = (uint32_t)event->book,
		.device = event->device,
		.number = number,
	};
	int r = recording_restore(walk->recording, event->book, &moment, &book);

	if (r == 0)
		r = view_read(&view, &book->reader, event->device, VIEW_DEAD);
	if (r == -ENOENT || r == -ENXIO || r == -EBADMSG)
		return 0; /* nothing is known of it, so nothing can be done */
	return r < 0 ? r : replay_take_table(walk, index, &view, event);
}

static void replay_note_failed_then(struct replay_walk *walk, const struct replay_device *device,
				    const struct book_record *record)
{
	struct refit_buffer buffer = replay_buffer(walk, device, record);
	int r = must_not_lack(refit_has_room(device->refit, &buffer));

	walk->failed_then++;
	walk->would_fit += r == 1;
	walk->would_fail += r == 0;
}

static int replay_apply(struct replay_walk *walk, size_t index, const struct recording_event *event)
{
	const struct book_event *what = event->event;
	uint32_t slot = what->op_slot >> 8;

	switch (what->op_slot & BOOK_OP_MASK) {
	case BOOK_OP_ALLOC:
		return replay_take(walk, index, slot, &what->record, event);
	case BOOK_OP_FREE:
		replay_give(&walk->devices[index], slot);
		return 0;
	case BOOK_OP_FAILED:
		replay_note_failed_then(walk, &walk->devices[index], &what->record);
		return 0;
	default:
		return 0; /* changes no memory */
	}
}

static int replay_event(void *context, const struct recording_event *event)
{
	struct replay_walk *walk = context;
	bool is_new;
	int64_t index = replay_find_device(walk, event, &is_new);
	int r = 0;

	if (index == -ENODATA)
		return 0;
	if (index < 0)
		return (int)index;
	if (!event->event) {
		walk->missed += event->gap ? event->gap->events : 0;
		return replay_resume(walk, (size_t)index, event, event->number);
	}
	walk->events++;
	if (is_new && event->number > 1)
		r = replay_resume(walk, (size_t)index, event, event->number - 1);
	return r ? r : replay_apply(walk, (size_t)index, event);
}

/* Devices of which the recording has states but no events. */
static int replay_add_quiet(struct replay_walk *walk, size_t book)
{
	struct recording_event event = {
		.book = book,
		.time_ns = recording_facts(walk->recording)->end_ns,
	};
	struct scan_book *found = walk->books[book].book;
	int64_t device = 0, index;
	bool is_new;
	int r = 0;

	for (; r == 0 && found; device++) {
		device = reader_next_shard(&found->reader, (uint32_t)device);
		if (device < 0)
			return device == -ENXIO ? 0 : (int)device;
		event.device = (uint32_t)device;
		index = replay_find_device(walk, &event, &is_new);
		if (index < 0)
			return (int)index;
		if (is_new)
			r = replay_resume(walk, (size_t)index, &event, UINT64_MAX);
	}
	return r;
}

static void replay_add_up(struct replay_walk *walk)
{
	struct refit_counts *sum = &walk->counts;

	for (size_t i = 0; i < walk->count; i++) {
		const struct replay_device *device = &walk->devices[i];
		const struct refit_counts *counts = refit_counts(device->refit);
		const struct refit_margin *margins = refit_margins(device->refit);

		sum->taken += counts->taken;
		sum->guessed += counts->guessed;
		sum->same += counts->same;
		sum->unjudged += counts->unjudged;
		sum->spaces += counts->spaces > 1 ? counts->spaces : 0;
		walk->assumed += device->assumes_l1 &&
				 (margins[TYPES_L1].is_known || margins[TYPES_L1_SMALL].is_known);
	}
	walk->is_same = !walk->card_name && !walk->card.dram_banks && !walk->card.l1_banks &&
			walk->fit == FREE_LIST_FIRST;
	walk->verdict = walk->has_failed ? REPLAY_FAILS
			: sum->taken > 0 ? REPLAY_RUNS
					 : REPLAY_NOT_KNOWN;
}

int replay_walk(struct replay_walk *walk)
{
	const struct recording_filter all = RECORDING_FILTER_ALL;
	int r = replay_open_books(walk);

	walk->facts = recording_facts(walk->recording);
	if (r == 0)
		r = recording_walk(walk->recording, &all, NULL, NULL, replay_event, walk);
	for (size_t i = 0; r == 0 && i < walk->facts->books; i++)
		r = replay_add_quiet(walk, i);
	replay_add_up(walk);
	return r == REFIT_FAILED ? 0 : r;
}
