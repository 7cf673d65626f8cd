/* SPDX-License-Identifier: Apache-2.0 */

/* The part of one device in a book that is being restored. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "book/format/event.h"
#include "book/read/reader.h"
#include "recording/read/restore-private.h"

#define DEVICE_EVENTS_PER_UNIT (BOOK_UNIT / (uint32_t)sizeof(struct book_event))
#define DEVICE_GRAVE_UNITS (BOOK_GRAVES * (uint32_t)sizeof(struct book_grave) / BOOK_UNIT)

struct device {
	struct restore *restore;
	const struct recording_stream *stream;
	struct replay_cut cut;
	size_t at; /* the chunk in which the cut is */
	struct replay replay;
	struct replay_counters counters;
	struct book_shard page;    /* as it is in the file */
	uint64_t number;           /* of the last event */
	struct book_grave *graves; /* the last ones; those before the first event are zeros */
};

static void device_deinit(struct device *device)
{
	replay_deinit(&device->replay);
	free(device->graves);
}

/* The place of a run of units in the pool; the segment table says whose it is. */
static int device_claim(const struct device *device, uint32_t unit, uint32_t units, uint8_t kind)
{
	const struct book_segment segment = {
		.owner = (uint16_t)device->stream->device,
		.kind = kind,
		.units = units,
	};

	if (unit < BOOK_POOL_FIRST_UNIT ||
	    ((uint64_t)unit + units) * BOOK_UNIT > device->restore->size)
		return -EBADMSG;
	return restore_write(device->restore,
			     BOOK_SEGMENTS_OFFSET + (uint64_t)unit * sizeof(segment), &segment,
			     sizeof(segment));
}

/* Bytes and keyframe have been recorded at different times; what one does not know, the other does. */
static int device_take_page(struct device *device)
{
	const struct book_shard *other = &device->replay.page;
	struct book_shard *page = &device->page;
	int r = restore_read(device->restore, book_shard_offset(device->stream->device), page,
			     sizeof(*page));

	if (r < 0)
		return r;
	if (device->replay.has_page) {
		if (!page->ring_unit) {
			page->ring_unit = other->ring_unit;
			page->ring_events = other->ring_events;
		}
		if (!page->graves_unit)
			page->graves_unit = other->graves_unit;
		for (uint32_t i = 0; i < BOOK_SEGMENTS_MAX; i++) {
			if (!page->directory[i])
				page->directory[i] = other->directory[i];
		}
	}
	if (page->ring_events < BOOK_RING_MIN || page->ring_events > BOOK_RING_MAX ||
	    (page->ring_events & (page->ring_events - 1)))
		return -EBADMSG;
	if (page->graves_unit)
		r = device_claim(device, page->graves_unit, DEVICE_GRAVE_UNITS,
				 BOOK_SEGMENT_GRAVES);
	return r < 0 ? r
		     : device_claim(device, page->ring_unit,
				    page->ring_events / DEVICE_EVENTS_PER_UNIT, BOOK_SEGMENT_RING);
}

/* Puts the last events of the replay into the ring, where the owner had them. */
static int device_ring(const struct device *device, uint32_t count)
{
	uint32_t ring = device->page.ring_events;
	uint32_t from = count > ring ? count - ring : 0;

	while (from < count) {
		uint64_t place = (device->replay.first + from) & (ring - 1);
		uint64_t run = bits_min(count - from, ring - place);
		int r = restore_write(device->restore,
				      book_unit_offset(device->page.ring_unit) +
					      place * sizeof(struct book_event),
				      &device->replay.events[from],
				      run * sizeof(struct book_event));

		if (r < 0)
			return r;
		from += (uint32_t)run;
	}
	return 0;
}

static void device_bury(struct device *device, const struct book_event *event)
{
	const struct book_record *record = &event->record;

	device->graves[(device->counters.graves - 1) % BOOK_GRAVES] = (struct book_grave){
		.address = record->address,
		.size = record->size,
		.birth = record->birth,
		.death = event->time,
		.birth_stack = record->stack,
		.death_stack = event->stack,
		/* An event has only the thread that freed it. */
		.birth_thread_space = book_other_thread(record->thread_space, 0),
		.death_thread = book_thread(record->thread_space),
		.name = record->name,
		.phase = record->phase,
		.meta = record->meta,
	};
}

static void device_count(struct device *device, const struct book_event *event, uint64_t number)
{
	uint32_t op = event->op_slot & 0xff, type = book_meta_type(event->record.meta);
	uint64_t graves = device->counters.graves;

	replay_count(&device->counters, event, number);
	if (device->counters.graves > graves)
		device_bury(device, event);
	if (type < BOOK_TYPES && reader_has_warm(device->restore->reader) &&
	    event_is_warm(op, &event->record))
		event_count_warm(op, reader_occupied(device->restore->reader, &event->record),
				 &device->counters.warm[type]);
}

/* Whether the cut is inside of the chunk that comes next. */
static bool device_is_cut(const struct device *device)
{
	const struct recording_entry *entry =
		stream_entry(device->restore->recording, device->stream, device->at);

	return device->replay.next == device->at &&
	       (device->cut.has_number ? entry->last > device->cut.number
				       : entry->stamp_last > device->cut.stamp);
}

/* One chunk, up to the cut. */
static int device_chunk(struct device *device, bool is_cut)
{
	struct replay *replay = &device->replay;
	int r = is_cut ? replay_step_aside(replay) : replay_step(replay);
	uint32_t count = is_cut ? replay_before(replay, &device->cut) : replay->count;

	if (r < 0)
		return r;
	if (r != REPLAY_EVENTS)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		device_count(device, &replay->events[i], replay->first + i);
		if (!is_cut)
			continue;
		r = columns_apply(&replay->table, &replay->events[i]);
		if (r < 0)
			return r;
	}
	device->number = replay->first + count - 1;
	return device_ring(device, count);
}

static int device_replay(struct device *device)
{
	while (replay_next(&device->replay) <= device->at) {
		bool is_cut = device_is_cut(device);
		int r = device_chunk(device, is_cut);

		if (r < 0 || is_cut)
			return r;
	}
	return 0;
}

static int device_write_records(struct device *device)
{
	const struct columns_table *table = &device->replay.table;

	for (uint32_t from = 0; from < table->count; from += BOOK_SEGMENT_SLOTS) {
		uint32_t unit = device->page.directory[from / BOOK_SEGMENT_SLOTS];
		uint64_t count = bits_min(table->count - from, BOOK_SEGMENT_SLOTS);
		int r = device_claim(device, unit, BOOK_SEGMENT_UNITS, BOOK_SEGMENT_RECORDS);

		if (r == 0)
			r = restore_write(device->restore, book_unit_offset(unit),
					  table->records + from, count * sizeof(*table->records));
		if (r < 0)
			return r;
	}
	return 0;
}

static int device_write_graves(const struct device *device)
{
	if (!device->page.graves_unit)
		return 0;
	return restore_write(device->restore, book_unit_offset(device->page.graves_unit),
			     device->graves, BOOK_GRAVES * sizeof(*device->graves));
}

static int device_write_page(struct device *device)
{
	struct book_shard *page = &device->page;
	const struct replay_counters *counters = &device->counters;

	page->head = device->number;
	page->slots = device->replay.table.count;
	page->inexact |= counters->inexact;
	page->graves = counters->graves;
	page->state = 1;
	memset(page->hot, 0, sizeof(page->hot));
	memset(page->cold, 0, sizeof(page->cold));
	memset(page->warm, 0, sizeof(page->warm));
	memset(page->checkpoint, 0, sizeof(page->checkpoint));
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		page->hot[type][0] = counters->hot[type];
		page->cold[type][0] = counters->cold[type];
		page->warm[type][0] = counters->warm[type];
		page->hot[type][0].number = page->cold[type][0].number =
			page->warm[type][0].number = device->number;
		page->has_warm |= counters->warm[type].known || counters->warm[type].unplaced_frees;
	}
	return restore_write(device->restore, book_shard_offset(device->stream->device), page,
			     sizeof(*page));
}

/* Before the first event that was recorded: as its keyframe has it, if nothing in that is later. */
static bool device_is_later(const struct device *device)
{
	uint64_t last = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		last = bits_max(last, device->counters.hot[type].last);
	return last > device->restore->stamp;
}

static int device_restore(struct device *device)
{
	struct recording *recording = device->restore->recording;
	const struct recording_stream *stream = device->stream;
	bool is_before = replay_find(recording, stream, &device->cut, &device->at) < 0;
	size_t begin = 0;
	int r = 0;

	if (is_before && stream_entry(recording, stream, 0)->kind != RECORDING_KEYFRAME)
		return -ENOENT;
	if (is_before)
		device->at = 0;
	/* Once for the size of the ring, which may be larger than all that the file has. */
	r = replay_begin(recording, stream, device->at, BOOK_RING_SURE, &begin);
	if (r == 0)
		r = replay_init(&device->replay, recording, stream, begin);
	if (r == 0)
		r = device_take_page(device);
	if (r < 0)
		return r;
	if (device->page.ring_events > BOOK_RING_SURE) {
		replay_deinit(&device->replay);
		r = replay_begin(recording, stream, device->at, device->page.ring_events, &begin);
		if (r == 0)
			r = replay_init(&device->replay, recording, stream, begin);
		if (r < 0)
			return r;
	}
	replay_counters(&device->replay, &device->counters);
	device->number = device->replay.number;
	if (is_before && device_is_later(device))
		return -ENOENT;
	return device_replay(device);
}

int restore_device(struct restore *restore, const struct recording_stream *stream)
{
	CLEANUP(device_deinit)
	struct device device = {
		.restore = restore,
		.stream = stream,
		.cut = restore_cut(restore, stream),
		.graves = calloc(BOOK_GRAVES, sizeof(*device.graves)),
	};
	int r = device.graves ? device_restore(&device) : -ENOMEM;

	if (r == 0)
		r = device_write_records(&device);
	if (r == 0)
		r = device_write_graves(&device);
	if (r == 0)
		r = device_write_page(&device);
	if (r == -ENOENT || r == -EBADMSG) {
		/* Not used yet; or in use, with a table that no reader accepts. */
		device.page = (struct book_shard){.state = r == -EBADMSG, .slots = UINT64_MAX};
		r = restore_write(restore, book_shard_offset(stream->device), &device.page,
				  sizeof(device.page));
	}
	return r;
}
