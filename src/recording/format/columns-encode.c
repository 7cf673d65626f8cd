/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Events into columns. Each field is compared with what is expected of it, and only what differs is
 * written; an event that fits no pattern is written as it is, so any bytes can be recorded.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "recording/format/columns-private.h"
#include "recording/format/layout.h"

/* The most that an event adds to each column. */
static const uint8_t encode_most[COLUMNS_COUNT] = {
	[COLUMNS_CONTROL] = 1,
	[COLUMNS_TIME_LOW] = 1,
	[COLUMNS_TIME_HIGH] = 8,
	[COLUMNS_SLOT] = 5,
	[COLUMNS_KIND] = 3,
	[COLUMNS_SIZE] = 10,
	[COLUMNS_ADDRESS] = 10,
	[COLUMNS_CALL] = 3,
	[COLUMNS_KINDS] = 30,
	[COLUMNS_CALLS] = 15,
	[COLUMNS_EXTRA] = COLUMNS_EVENT_BYTES,
};

struct encoder {
	struct columns_model model;
	struct columns_table *table;
	uint8_t *bytes; /* all columns, each with room for the most */
	uint8_t *start[COLUMNS_COUNT];
	uint8_t *at[COLUMNS_COUNT];
	/* Number + 1 of kinds and calls by hash; 0 = none. */
	uint32_t *kind_at, *call_at;
	uint32_t mask;
};

/* Also what the columns take together: no event is in all of them with the most. */
size_t columns_bound(uint32_t count)
{
	size_t each = 0;

	for (uint32_t i = 0; i < COLUMNS_COUNT; i++)
		each += encode_most[i];
	return COLUMNS_COUNT * sizeof(uint32_t) + (size_t)count * each;
}

static int encoder_init(struct encoder *encoder, struct columns_table *table, uint32_t count)
{
	uint32_t size = count < 8 ? 16 : (uint32_t)bits_floor_pow2(count) * 4;
	uint8_t *at;
	int r;

	*encoder = (struct encoder){.table = table, .mask = size - 1};
	r = columns_model_init(&encoder->model, count);
	encoder->bytes = at = malloc(columns_bound(count));
	encoder->kind_at = calloc(size, sizeof(*encoder->kind_at));
	encoder->call_at = calloc(size, sizeof(*encoder->call_at));
	if (r < 0 || !encoder->bytes || !encoder->kind_at || !encoder->call_at)
		return -ENOMEM;
	for (uint32_t i = 0; i < COLUMNS_COUNT; i++) {
		encoder->start[i] = encoder->at[i] = at;
		at += (size_t)count * encode_most[i];
	}
	return 0;
}

static void encoder_deinit(struct encoder *encoder)
{
	columns_model_deinit(&encoder->model);
	free(encoder->bytes);
	free(encoder->kind_at);
	free(encoder->call_at);
}

static inline void encoder_put(struct encoder *encoder, enum columns_column column, uint64_t value)
{
	encoder->at[column] = columns_put(encoder->at[column], value);
}

static inline void encoder_put_byte(struct encoder *encoder, enum columns_column column,
				    uint32_t value)
{
	*encoder->at[column]++ = (uint8_t)value;
}

static void encoder_new_kind(struct encoder *encoder, const struct columns_kind_key *key)
{
	encoder->model.kinds[encoder->model.kind_count++] = (struct columns_kind){.key = *key};
	encoder_put(encoder, COLUMNS_KINDS, key->stack);
	encoder_put(encoder, COLUMNS_KINDS, key->name);
	encoder_put(encoder, COLUMNS_KINDS, key->phase);
	encoder_put(encoder, COLUMNS_KINDS, key->thread_space);
	encoder_put(encoder, COLUMNS_KINDS, key->meta);
	encoder_put(encoder, COLUMNS_KINDS, key->shape);
}

/* The kind of a new record, which is written too. */
static struct columns_kind *encoder_kind(struct encoder *encoder, const struct book_record *record)
{
	struct columns_kind_key key = {record->stack,        record->name, record->phase,
				       record->thread_space, record->meta, record->shape};
	uint64_t words[3];
	uint32_t *place;

	memcpy(words, &key, sizeof(words));
	for (uint32_t i = (uint32_t)hash_fold(words[0] ^ HASH_K0,
					      hash_fold(words[1] ^ HASH_K1, words[2] ^ HASH_K0));
	     ; i++) {
		place = &encoder->kind_at[i & encoder->mask];
		if (*place == 0)
			break;
		if (memcmp(&encoder->model.kinds[*place - 1].key, &key, sizeof(key)) == 0)
			break;
	}
	if (*place == 0) {
		encoder_new_kind(encoder, &key);
		*place = encoder->model.kind_count;
		encoder_put(encoder, COLUMNS_KIND, 0);
	} else {
		encoder_put(encoder, COLUMNS_KIND, *place);
	}
	return &encoder->model.kinds[*place - 1];
}

/* The number of what happens to a live record; new ones are written. */
static uint32_t encoder_call(struct encoder *encoder, const struct columns_call *call,
			     bool *ret_is_new)
{
	uint64_t words[2];

	memcpy(words, call, sizeof(words));
	for (uint32_t i = (uint32_t)hash_fold(words[0] ^ HASH_K0, words[1] ^ HASH_K1);; i++) {
		uint32_t *place = &encoder->call_at[i & encoder->mask];

		*ret_is_new = *place == 0;
		if (*place == 0) {
			encoder->model.calls[encoder->model.call_count++] = *call;
			*place = encoder->model.call_count;
			encoder_put(encoder, COLUMNS_CALLS, call->stack);
			encoder_put(encoder, COLUMNS_CALLS, call->thread_space);
			encoder_put(encoder, COLUMNS_CALLS, call->meta_change);
			return *place;
		}
		if (memcmp(&encoder->model.calls[*place - 1], call, sizeof(*call)) == 0)
			return *place;
	}
}

/* An event that has a new record or none. */
static int encoder_new_record(struct encoder *encoder, const struct book_event *event,
			      uint32_t control)
{
	const struct book_record *record = &event->record;
	struct columns_model *model = &encoder->model;
	struct columns_kind *kind = encoder_kind(encoder, record);
	const struct columns_freed *freed = NULL;
	uint32_t slot = event->op_slot >> 8, expected = 0;

	if ((event->op_slot & BOOK_OP_MASK) == BOOK_OP_ALLOC)
		expected = columns_expected_slot(model, encoder->table, &freed);
	if (slot == expected)
		control |= COLUMNS_SLOT_EXPECTED;
	else
		encoder_put(encoder, COLUMNS_SLOT, columns_zigzag((uint64_t)slot - model->slot));
	if (record->size == kind->size)
		control |= COLUMNS_SIZE_EXPECTED;
	else
		encoder_put(encoder, COLUMNS_SIZE, columns_zigzag(record->size - kind->size));
	if (record->address == kind->address)
		control |= COLUMNS_ADDRESS_KIND;
	else if (freed && slot == expected && record->address == freed->address)
		control |= COLUMNS_ADDRESS_FREED;
	else if (record->address == model->next)
		control |= COLUMNS_ADDRESS_NEXT;
	else
		encoder_put(encoder, COLUMNS_ADDRESS,
			    columns_zigzag(record->address - kind->address));
	encoder_put_byte(encoder, COLUMNS_CONTROL, control);
	if (freed && slot == expected)
		model->freed_count--;
	kind->address = record->address;
	kind->size = record->size;
	return columns_follow(model, encoder->table, event);
}

static int encoder_live_record(struct encoder *encoder, const struct book_event *event,
			       uint32_t control)
{
	struct columns_model *model = &encoder->model;
	uint32_t slot = event->op_slot >> 8;
	struct columns_call call = {
		.stack = event->stack,
		.thread_space = event->record.thread_space,
		.meta_change = event->record.meta - encoder->table->records[slot].meta,
	};
	bool is_new;
	uint32_t number = encoder_call(encoder, &call, &is_new);

	if (slot == model->slot)
		control |= COLUMNS_SLOT_LAST;
	else
		encoder_put(encoder, COLUMNS_SLOT,
			    columns_zigzag((uint64_t)slot - model->slot_live));
	if (number == model->call && !is_new)
		control |= COLUMNS_CALL_LAST;
	else
		encoder_put(encoder, COLUMNS_CALL, is_new ? 0 : number);
	model->call = number;
	encoder_put_byte(encoder, COLUMNS_CONTROL, control);
	return columns_follow(model, encoder->table, event);
}

/* Whether the record is the live one of its slot, as an honest owner's is. */
static bool encoder_is_live_record(const struct encoder *encoder, const struct book_event *event)
{
	uint32_t slot = event->op_slot >> 8;
	struct book_record record;

	if (!columns_is_live(encoder->table, slot))
		return false;
	record = encoder->table->records[slot];
	record.thread_space = event->record.thread_space;
	record.meta = event->record.meta;
	return memcmp(&record, &event->record, sizeof(record)) == 0;
}

static int encoder_plain(struct encoder *encoder, const struct book_event *event)
{
	encoder_put_byte(encoder, COLUMNS_CONTROL, COLUMNS_PLAIN);
	memcpy(encoder->at[COLUMNS_EXTRA], &event->op_slot, COLUMNS_EVENT_BYTES);
	encoder->at[COLUMNS_EXTRA] += COLUMNS_EVENT_BYTES;
	return columns_apply(encoder->table, event);
}

static int encoder_event(struct encoder *encoder, const struct book_event *event)
{
	uint32_t op = event->op_slot & 0xff, control = op;
	uint64_t time = columns_zigzag(event->time - encoder->model.time);
	bool is_known = columns_op_is_known(op);

	encoder->model.time = event->time;
	encoder_put_byte(encoder, COLUMNS_TIME_LOW, (uint32_t)time & 0xff);
	encoder_put(encoder, COLUMNS_TIME_HIGH, time >> 8);
	if ((op & BOOK_OP_MASK) == COLUMNS_PLAIN ||
	    (is_known ? !encoder_is_live_record(encoder, event)
		      : event->record.birth != event->time || event->record.stack != event->stack))
		return encoder_plain(encoder, event);
	if (op >= COLUMNS_MODIFIED) {
		control = COLUMNS_MODIFIED;
		encoder_put_byte(encoder, COLUMNS_EXTRA, op);
	}
	if (is_known)
		return encoder_live_record(encoder, event, control);
	return encoder_new_record(encoder, event, control);
}

static int64_t encoder_join(const struct encoder *encoder, uint8_t *ret_bytes)
{
	uint8_t *to = ret_bytes + COLUMNS_COUNT * sizeof(uint32_t);

	for (uint32_t i = 0; i < COLUMNS_COUNT; i++) {
		uint32_t length = (uint32_t)(encoder->at[i] - encoder->start[i]);

		memcpy(ret_bytes + i * sizeof(length), &length, sizeof(length));
		memcpy(to, encoder->start[i], length);
		to += length;
	}
	return to - ret_bytes;
}

int64_t columns_encode(struct columns_table *table, const struct book_event *events, uint32_t count,
		       uint8_t *ret_bytes)
{
	struct encoder encoder;
	int64_t r;

	if (count > RECORDING_EVENTS_MAX)
		return -EINVAL;
	r = encoder_init(&encoder, table, count);
	for (uint32_t i = 0; i < count && r == 0; i++)
		r = encoder_event(&encoder, &events[i]);
	if (r == 0)
		r = encoder_join(&encoder, ret_bytes);
	encoder_deinit(&encoder);
	return r;
}
