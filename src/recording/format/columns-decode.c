/* SPDX-License-Identifier: Apache-2.0 */

/* Columns into events. The bytes may be anybody's: every number is checked before it is used. */

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "recording/format/columns-private.h"
#include "recording/format/layout.h"

struct decoder {
	struct columns_model model;
	struct columns_table *table;
	struct columns_cursor at[COLUMNS_COUNT];
};

static inline uint64_t decoder_get(struct decoder *decoder, enum columns_column column)
{
	return columns_get(&decoder->at[column]);
}

static inline uint64_t decoder_difference(struct decoder *decoder, enum columns_column column)
{
	return columns_unzigzag(decoder_get(decoder, column));
}

static bool decoder_split(struct decoder *decoder, const uint8_t *bytes, size_t size)
{
	struct columns_cursor all = {.at = bytes, .end = bytes + size};
	struct columns_cursor head = columns_split(&all, COLUMNS_COUNT * sizeof(uint32_t));

	if (all.failed)
		return false;
	for (uint32_t i = 0; i < COLUMNS_COUNT; i++) {
		uint32_t length;

		memcpy(&length, head.at + i * sizeof(length), sizeof(length));
		decoder->at[i] = columns_split(&all, length);
	}
	return !all.failed && all.at == all.end;
}

/* Every byte was used, and no more than there were. */
static bool decoder_is_done(const struct decoder *decoder)
{
	for (uint32_t i = 0; i < COLUMNS_COUNT; i++) {
		if (decoder->at[i].failed || decoder->at[i].at != decoder->at[i].end)
			return false;
	}
	return true;
}

/* NULL: there is no such kind. */
static struct columns_kind *decoder_kind(struct decoder *decoder)
{
	struct columns_cursor *kinds = &decoder->at[COLUMNS_KINDS];
	uint64_t number = decoder_get(decoder, COLUMNS_KIND);
	struct columns_kind *kind;

	if (number > decoder->model.kind_count || decoder->at[COLUMNS_KIND].failed)
		return NULL;
	if (number > 0)
		return &decoder->model.kinds[number - 1];
	kind = &decoder->model.kinds[decoder->model.kind_count++];
	*kind = (struct columns_kind){0};
	kind->key.stack = columns_get_u32(kinds);
	kind->key.name = columns_get_u32(kinds);
	kind->key.phase = columns_get_u32(kinds);
	kind->key.thread_space = columns_get_u32(kinds);
	kind->key.meta = columns_get_u32(kinds);
	kind->key.shape = columns_get_u32(kinds);
	return kinds->failed ? NULL : kind;
}

static const struct columns_call *decoder_call(struct decoder *decoder, uint32_t control)
{
	struct columns_cursor *calls = &decoder->at[COLUMNS_CALLS];
	struct columns_model *model = &decoder->model;
	struct columns_call *call;
	uint64_t number = model->call;

	if (!(control & COLUMNS_CALL_LAST)) {
		number = decoder_get(decoder, COLUMNS_CALL);
		if (decoder->at[COLUMNS_CALL].failed)
			return NULL;
		if (number == 0) {
			call = &model->calls[model->call_count++];
			call->stack = columns_get_u32(calls);
			call->thread_space = columns_get_u32(calls);
			call->meta_change = columns_get_u32(calls);
			number = model->call_count;
		}
	}
	if (number == 0 || number > model->call_count || calls->failed)
		return NULL;
	model->call = (uint32_t)number;
	return &model->calls[number - 1];
}

static uint64_t decoder_address(struct decoder *decoder, uint32_t control,
				const struct columns_kind *kind, const struct columns_freed *freed)
{
	switch (control & COLUMNS_ADDRESS_MASK) {
	case COLUMNS_ADDRESS_KIND:
		return kind->address;
	case COLUMNS_ADDRESS_FREED:
		return freed ? freed->address : 0;
	case COLUMNS_ADDRESS_NEXT:
		return decoder->model.next;
	default:
		return kind->address + decoder_difference(decoder, COLUMNS_ADDRESS);
	}
}

static int decoder_new_record(struct decoder *decoder, uint32_t op, uint32_t control,
			      struct book_event *event)
{
	struct columns_model *model = &decoder->model;
	struct columns_kind *kind = decoder_kind(decoder);
	const struct columns_freed *freed = NULL;
	uint64_t slot = 0;

	if (!kind)
		return -EBADMSG;
	if ((op & BOOK_OP_MASK) == BOOK_OP_ALLOC)
		slot = columns_expected_slot(model, decoder->table, &freed);
	if (!(control & COLUMNS_SLOT_EXPECTED)) {
		slot = model->slot + decoder_difference(decoder, COLUMNS_SLOT);
		freed = NULL;
	}
	if (slot >= BOOK_SLOTS_MAX)
		return -EBADMSG;
	if (!(control & COLUMNS_SIZE_EXPECTED))
		kind->size += decoder_difference(decoder, COLUMNS_SIZE);
	kind->address = decoder_address(decoder, control, kind, freed);
	if (freed)
		model->freed_count--;
	event->op_slot = (uint32_t)slot << 8 | op;
	event->stack = kind->key.stack;
	event->record = (struct book_record){
		.address = kind->address,
		.size = kind->size,
		.birth = event->time,
		.stack = kind->key.stack,
		.name = kind->key.name,
		.phase = kind->key.phase,
		.thread_space = kind->key.thread_space,
		.meta = kind->key.meta,
		.shape = kind->key.shape,
	};
	return columns_follow(model, decoder->table, event);
}

static int decoder_live_record(struct decoder *decoder, uint32_t op, uint32_t control,
			       struct book_event *event)
{
	const struct columns_call *call = decoder_call(decoder, control);
	uint64_t slot = decoder->model.slot;

	if (!call || control & COLUMNS_CALL_UNUSED)
		return -EBADMSG;
	if (!(control & COLUMNS_SLOT_LAST))
		slot = decoder->model.slot_live + decoder_difference(decoder, COLUMNS_SLOT);
	if (slot >= BOOK_SLOTS_MAX || !columns_is_live(decoder->table, (uint32_t)slot))
		return -EBADMSG;
	event->op_slot = (uint32_t)slot << 8 | op;
	event->stack = call->stack;
	event->record = decoder->table->records[slot];
	event->record.thread_space = call->thread_space;
	event->record.meta += call->meta_change;
	return columns_follow(&decoder->model, decoder->table, event);
}

static int decoder_plain(struct decoder *decoder, uint32_t control, struct book_event *event)
{
	struct columns_cursor bytes =
		columns_split(&decoder->at[COLUMNS_EXTRA], COLUMNS_EVENT_BYTES);

	if (bytes.failed || control != COLUMNS_PLAIN)
		return -EBADMSG;
	memcpy(&event->op_slot, bytes.at, COLUMNS_EVENT_BYTES);
	return columns_apply(decoder->table, event);
}

static int decoder_event(struct decoder *decoder, struct book_event *event)
{
	uint32_t control = columns_get_byte(&decoder->at[COLUMNS_CONTROL]);
	uint64_t time = columns_get_byte(&decoder->at[COLUMNS_TIME_LOW]);
	uint32_t op = control & 0xf;

	time |= decoder_get(decoder, COLUMNS_TIME_HIGH) << 8;
	event->time = decoder->model.time += columns_unzigzag(time);
	if (op == COLUMNS_PLAIN)
		return decoder_plain(decoder, control, event);
	if (op == COLUMNS_MODIFIED)
		op = columns_get_byte(&decoder->at[COLUMNS_EXTRA]);
	if (columns_op_is_known(op))
		return decoder_live_record(decoder, op, control & 0xf0, event);
	return decoder_new_record(decoder, op, control & 0xf0, event);
}

int columns_decode(struct columns_table *table, const uint8_t *bytes, size_t size, uint32_t count,
		   struct book_event *ret_events)
{
	struct decoder decoder = {.table = table};
	int r;

	if (count > RECORDING_EVENTS_MAX || !decoder_split(&decoder, bytes, size))
		return -EBADMSG;
	/* So the columns that every event is in cannot end while it is taken apart. */
	if (decoder.at[COLUMNS_CONTROL].end - decoder.at[COLUMNS_CONTROL].at != count)
		return -EBADMSG;
	r = columns_model_init(&decoder.model, count);
	for (uint32_t i = 0; i < count && r == 0; i++)
		r = decoder_event(&decoder, &ret_events[i]);
	if (r == 0 && !decoder_is_done(&decoder))
		r = -EBADMSG;
	columns_model_deinit(&decoder.model);
	return r;
}
