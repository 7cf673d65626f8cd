/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A shard whose holder has left in the middle of an event, at any instruction. What it has published
 * is in the book and is completed by the rule for dead owners (book/read/view.c): take the counter
 * blocks with the larger numbers and apply the events above them. Nothing in the private half that takes
 * more than one store can be relied on, so it is made again from the book. If the holder of the lock
 * leaves in here too, the next one starts over.
 *
 * The event that was interrupted may never have been published, and nothing says which one it was. So
 * the device's figures are bounds from then on.
 */

#include "base/threads/lock-left.h"
#include "book/write/index.h"
#include "book/write/room.h"
#include "book/write/shard-apply.h"
#include "book/write/writer.h"

static void recover_counters(struct shard *shard)
{
	const struct book_shard *page = shard->page;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		uint8_t hot = page->hot[type][1].number > page->hot[type][0].number;
		uint8_t cold = page->cold[type][1].number > page->cold[type][0].number;

		shard->hot_side[type] = hot;
		shard->hot[type] = page->hot[type][hot];
		shard->cold_side[type] = cold;
		shard->cold[type] = page->cold[type][cold];
		shard->warm_side[type] = page->warm[type][1].number > page->warm[type][0].number;
	}
}

/* Applies event @number, in the order that readers of a dead owner's book rely on. */
static void recover_event(struct shard *shard, uint64_t number)
{
	const struct book_event event = *shard_event(shard, number);
	uint32_t op = event.op_slot & 0xff;
	uint32_t type = book_meta_type(event.record.meta);
	struct book_hot hot = shard->hot[type];
	struct book_record *record;

	if (number <= hot.number)
		return;
	shard->head = number; /* the blocks take their numbers from it */
	if (event_has_slot(op)) {
		record = records_at(&shard->records, event.op_slot >> 8);
		if ((op & BOOK_OP_MASK) == BOOK_OP_FREE)
			record->meta = 0;
		else
			*record = event.record;
	}
	if (event_is_rare(op) && number > shard->cold[type].number) {
		event_count_cold(op, &shard->cold[type]);
		shard_store_cold(shard, type);
	}
	if (event_is_warm(op, &event.record) && number > shard_warm(shard, type).number)
		shard_count_warm(shard, op, event.record.meta, event.record.shape);
	event_count_hot(op, event.time, &event.record, &hot);
	hot.number = number;
	shard_store_hot(shard, type, &hot);
}

/* A free whose buffer was not buried: freed again, it counts as never seen. */
static bool recover_lacks_grave(const struct shard *shard, const struct book_event *last)
{
	const struct graveyard *yard = &shard->graveyard;
	const struct book_grave *grave;

	if ((last->op_slot & BOOK_OP_MASK) != BOOK_OP_FREE || !yard->graves)
		return false;
	grave = &yard->graves[(yard->count - 1) % BOOK_GRAVES];
	return yard->count == 0 || grave->address != last->record.address ||
	       grave->death != last->time;
}

static void recover_log(struct shard *shard)
{
	uint64_t head = shard->page->head;
	const struct book_event *last;

	/* Two at most: a size change publishes two together. */
	for (uint64_t number = head > 1 ? head - 1 : 1; number <= head; number++)
		recover_event(shard, number);
	shard->head = head;
	if (head == 0)
		return;
	last = shard_event(shard, head);
	shard->last_birth = bits_max(shard->last_birth, last->time);
	if (recover_lacks_grave(shard, last))
		writer_reject(&shard->writer->header->lost_graves);
}

static void recover_graves(struct shard *shard)
{
	struct graveyard *yard = &shard->graveyard;

	if (yard->room)
		yard->graves =
			(struct book_grave *)(void *)(shard->base +
						      book_unit_offset(shard->page->graves_unit));
	graveyard_relink(yard);
}

/* Index and free list, from the records. */
static void recover_slots(struct shard *shard)
{
	uint32_t within = shard->slot_room % BOOK_SEGMENT_SLOTS;

	shard->segment_bytes =
		(uint32_t)bits_align_up(within * sizeof(struct book_record), BOOK_PAGE);
	shard->slots = (uint32_t)shard->page->slots;
	shard->free_slot = 0;
	index_clear(&shard->index);
	for (uint32_t slot = shard->slots; slot-- > 0;) {
		struct book_record *record = records_at(&shard->records, slot);
		struct index_key key = index_key_of(record);

		if (!(record->meta & BOOK_META_LIVE)) {
			record->stack = shard->free_slot;
			shard->free_slot = slot + 1;
		} else if (index_prepare(&shard->index, &shard->records)) {
			index_insert(&shard->index, index_hash(key.address, key.space), slot);
		} /* else out of memory: its free will not find it, and the device is inexact */
	}
}

void shard_recover(struct shard *shard)
{
	shard_mark_inexact(shard, BOOK_INEXACT_LOW | BOOK_INEXACT_HIGH, INDEX_ANY);
	writer_reject(&shard->writer->header->rejected.lock);
	recover_counters(shard);
	recover_graves(shard);
	recover_log(shard);
	recover_slots(shard);
	/* Its array may be half moved. What it listed has no owner any more. */
	shard->owners = NULL;
	shard_checkpoint(shard);
}

bool shard_take_slow(struct shard *shard, const uint32_t *mark)
{
	enum lock_outcome outcome = lock_take_slow(&shard->lock, shard->writer->home);

	if (outcome == LOCK_FAILED)
		return false;
	lock_name_holder(&shard->lock, mark);
	if (outcome == LOCK_TAKEN_OVER)
		shard_recover(shard);
	return true;
}

void writer_drop_left(struct writer *writer, uint32_t thread)
{
	for (uint32_t device = 0; thread && device < BOOK_DEVICES; device++) {
		struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);
		uint64_t both;

		if (!shard)
			continue;
		both = __atomic_load_n(&shard->lock.both, __ATOMIC_RELAXED);
		if (both >> 32 != thread || !lock_take_from(&shard->lock, both))
			continue;
		lock_name_holder(&shard->lock, &thread);
		shard_recover(shard);
		lock_drop(&shard->lock);
	}
}
