/* SPDX-License-Identifier: Apache-2.0 */

/* A recorder for tests. */

#include "recording/testing/testing-recorder.h"

#undef NDEBUG
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "book/format/book-clock.h"
#include "book/format/event.h"
#include "book/read/log.h"
#include "book/read/view.h"
#include "recording/write/chunk-writer.h"

static void recorder_now(const struct testing_recorded *recorded, struct recording_entry *entry)
{
	entry->stamp_now = book_clock_read(recorded->book->clock);
	entry->monotonic_now = clock_ns(CLOCK_MONOTONIC);
	entry->realtime_now = clock_ns(CLOCK_REALTIME);
	entry->stamp_first = entry->stamp_last = entry->stamp_now;
	entry->book = recorded->number;
	entry->device = RECORDING_NONE;
}

static void recorder_add(const struct testing_recorded *recorded,
			 const struct recording_entry *entry, const struct chunk_part *parts,
			 size_t count)
{
	assert(chunk_writer_add(recorded->recorder->writer, entry, parts, count) == 0);
}

void testing_recorder_init(struct testing_recorder *recorder)
{
	char path[sizeof(recorder->path)];

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): tests have one thread here */
	snprintf(path, sizeof(path), "%s/recording.ttmem", getenv("TMPDIR"));
	testing_recorder_open(recorder, path);
}

void testing_recorder_open(struct testing_recorder *recorder, const char *path)
{
	const struct recording_entry head = {
		.kind = RECORDING_HEAD,
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
		.realtime_now = clock_ns(CLOCK_REALTIME),
		.monotonic_now = clock_ns(CLOCK_MONOTONIC),
	};
	static const char json[] = "{\"command\":\"test me\",\"host\":\"here\"}";

	*recorder = (struct testing_recorder){0};
	snprintf(recorder->path, sizeof(recorder->path), "%s", path);
	recorder->fd = open(recorder->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert(recorder->fd >= 0);
	assert(chunk_writer_new(&recorder->writer, recorder->fd, 0) == 0);
	assert(chunk_writer_add(recorder->writer, &head,
				&(struct chunk_part){json, sizeof(json) - 1}, 1) == 0);
}

void testing_recorder_end(struct testing_recorder *recorder)
{
	const struct recording_entry end = {
		.kind = RECORDING_END,
		.book = RECORDING_NONE,
		.device = RECORDING_NONE,
		.realtime_now = clock_ns(CLOCK_REALTIME),
	};

	assert(chunk_writer_end(recorder->writer, &end, "{}") == 0);
}

uint64_t testing_recorder_last(const struct testing_recorder *recorder)
{
	return chunk_writer_last(recorder->writer);
}

void testing_recorder_deinit(struct testing_recorder *recorder)
{
	chunk_writer_free(recorder->writer);
	close(recorder->fd);
}

void testing_recorded_init(struct testing_recorded *recorded, struct testing_recorder *recorder,
			   struct testing_book *book, uint32_t pid)
{
	struct recording_entry entry = {.kind = RECORDING_BOOK};
	struct recording_book facts = {
		.pid = pid,
		.ns_pid = pid,
		.user_id = 1000,
		.maker_id = 1000,
		.start_ticks = 1,
		.start_ns = clock_ns(CLOCK_REALTIME),
		.comm = "test",
		.user = "somebody",
	};

	*recorded = (struct testing_recorded){
		.recorder = recorder, .book = book, .number = recorder->books++};
	memcpy(&facts.header, book->base, sizeof(facts.header));
	recorder_now(recorded, &entry);
	recorder_add(recorded, &entry, &(struct chunk_part){&facts, sizeof(facts)}, 1);
}

void testing_recorded_deinit(struct testing_recorded *recorded)
{
	for (uint32_t i = 0; i < TESTING_DEVICES; i++)
		columns_table_deinit(&recorded->streams[i].table);
}

static void recorder_add_bytes(const struct testing_recorded *recorded, uint64_t offset,
			       size_t length)
{
	static const uint8_t zeros[8];
	struct recording_entry entry = {.kind = RECORDING_BYTES, .count = 1};
	const struct recording_bytes head = {.offset = offset, .length = (uint32_t)length};
	const struct chunk_part parts[] = {
		{&head, sizeof(head)},
		{recorded->book->base + offset, length},
		{zeros, bits_align_up(length, 8) - length},
	};

	recorder_now(recorded, &entry);
	recorder_add(recorded, &entry, parts, ARRAY_SIZE(parts));
}

void testing_recorded_bytes(const struct testing_recorded *recorded)
{
	const uint8_t *base = recorded->book->base;
	const struct book_header *header = (const void *)base;
	const struct book_arena *arenas = (const void *)(base + BOOK_ARENAS_OFFSET);

	recorder_add_bytes(recorded, offsetof(struct book_header, state),
			   sizeof(*header) - offsetof(struct book_header, state));
	recorder_add_bytes(recorded, BOOK_ARENAS_OFFSET, BOOK_PAGE);
	recorder_add_bytes(recorded, BOOK_MARKS_OFFSET, BOOK_MARKS * sizeof(struct book_mark));
	recorder_add_bytes(recorded, BOOK_SEGMENTS_OFFSET,
			   recorded->book->size / BOOK_UNIT * sizeof(struct book_segment));
	recorder_add_bytes(recorded, BOOK_DEVICES_OFFSET,
			   TESTING_DEVICES * sizeof(struct book_device));
	recorder_add_bytes(recorded, BOOK_SHARDS_OFFSET,
			   TESTING_DEVICES * sizeof(struct book_shard));
	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS; kind++) {
		if (header->incident_count[kind])
			recorder_add_bytes(recorded, book_incident_offset(kind, 0),
					   header->incident_count[kind] *
						   sizeof(struct book_incident));
	}
	/* Tests have no more than a segment of each. */
	for (uint32_t kind = 0; kind < BOOK_ARENA_COUNT; kind++) {
		if (arenas[kind].directory[0])
			recorder_add_bytes(recorded, book_unit_offset(arenas[kind].directory[0]),
					   arenas[kind].used);
	}
}

static const struct book_shard *recorder_page(const struct testing_recorded *recorded,
					      uint32_t device)
{
	return (const void *)(recorded->book->base + book_shard_offset(device));
}

static void recorder_sums(struct testing_stream *stream, struct recording_entry *entry,
			  const struct book_event *events)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		entry->high[type] = stream->hot[type].bytes;
	for (uint32_t i = 0; i < entry->count; i++) {
		uint32_t type = book_meta_type(events[i].record.meta);

		entry->stamp_first = bits_min(entry->stamp_first, events[i].time);
		entry->stamp_last = bits_max(entry->stamp_last, events[i].time);
		event_count_hot(events[i].op_slot & 0xff, events[i].time, &events[i].record,
				&stream->hot[type]);
		if (stream->hot[type].bytes > entry->high[type]) {
			entry->high[type] = stream->hot[type].bytes;
			entry->high_number[type] = entry->first + i;
		}
	}
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		entry->bytes[type] = stream->hot[type].bytes;
}

void testing_recorded_events(struct testing_recorded *recorded, uint32_t device, uint32_t most)
{
	struct testing_stream *stream = &recorded->streams[device];
	uint64_t first = stream->last + 1;
	uint64_t last = bits_min(recorder_page(recorded, device)->head, stream->last + most);
	struct book_event *events;
	struct log_place place;

	if (last < first)
		return;
	events = malloc((last - first + 1) * sizeof(*events));
	assert(events);
	assert(log_find(&recorded->book->reader, recorder_page(recorded, device), device, &place) ==
	       0);
	assert(last - first < place.events);
	assert(log_read(&place, &recorded->book->reader, first, last, events) == 0);
	testing_recorded_put(recorded, device, events, (uint32_t)(last - first) + 1);
	free(events);
}

void testing_recorded_put(struct testing_recorded *recorded, uint32_t device,
			  const struct book_event *events, uint32_t count)
{
	struct testing_stream *stream = &recorded->streams[device];
	struct recording_entry entry = {.kind = RECORDING_EVENTS, .count = count};
	uint8_t *bytes = malloc(columns_bound(count));
	int64_t length;

	assert(bytes);
	recorder_now(recorded, &entry);
	entry.device = device;
	entry.first = stream->last + 1;
	entry.last = stream->last + count;
	length = columns_encode(&stream->table, events, count, bytes);
	assert(length > 0);
	entry.stamp_first = UINT64_MAX;
	entry.stamp_last = 0;
	recorder_sums(stream, &entry, events);
	/* Events that were made up may be in the future; what is recorded is not older than its events. */
	entry.stamp_now = bits_max(entry.stamp_now, entry.stamp_last);
	recorder_add(recorded, &entry, &(struct chunk_part){bytes, (size_t)length}, 1);
	stream->last = entry.last;
	free(bytes);
}

void testing_recorded_state(struct testing_recorded *recorded, uint32_t device)
{
	struct testing_stream *stream = &recorded->streams[device];
	struct recording_entry entry = {.kind = RECORDING_KEYFRAME, .last = stream->last};
	struct book_shard page = *recorder_page(recorded, device);
	uint8_t *bytes = malloc(columns_table_bound(&stream->table));
	int64_t length = columns_encode_table(&stream->table, bytes);

	assert(bytes && length > 0);
	memset(page.cold, 0, sizeof(page.cold));
	memset(page.warm, 0, sizeof(page.warm));
	recorder_now(recorded, &entry);
	entry.device = device;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		page.hot[type][0] = stream->hot[type];
		page.hot[type][0].number = stream->last;
		page.hot[type][1].number = 0;
		entry.bytes[type] = entry.high[type] = stream->hot[type].bytes;
		entry.stamp_now = bits_max(entry.stamp_now, stream->hot[type].last);
	}
	entry.stamp_first = entry.stamp_last = entry.stamp_now;
	recorder_add(recorded, &entry,
		     (const struct chunk_part[]){{&page, sizeof(page)}, {bytes, (size_t)length}},
		     2);
	free(bytes);
}

void testing_recorded_keyframe(struct testing_recorded *recorded, uint32_t device)
{
	struct testing_stream *stream = &recorded->streams[device];
	struct recording_entry entry = {.kind = RECORDING_KEYFRAME, .last = stream->last};
	struct book_shard page = *recorder_page(recorded, device);
	static struct view view;
	uint8_t *bytes = malloc(columns_table_bound(&stream->table));
	int64_t length = columns_encode_table(&stream->table, bytes);

	assert(page.head == stream->last && bytes && length > 0);
	assert(view_read(&view, &recorded->book->reader, device, VIEW_DEAD) == 0);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		page.hot[type][0] = view.hot[type];
		page.cold[type][0] = view.cold[type];
		page.warm[type][0] = view.warm[type];
		page.hot[type][0].number = page.cold[type][0].number = page.warm[type][0].number =
			stream->last;
		entry.bytes[type] = entry.high[type] = view.hot[type].bytes;
	}
	recorder_now(recorded, &entry);
	entry.device = device;
	recorder_add(recorded, &entry,
		     (const struct chunk_part[]){{&page, sizeof(page)}, {bytes, (size_t)length}},
		     2);
	free(bytes);
	view_deinit(&view);
}

/* What the stream knows becomes what the book has now. */
static void recorder_jump(struct testing_recorded *recorded, uint32_t device)
{
	struct testing_stream *stream = &recorded->streams[device];
	static struct view view;
	struct view_iterator it = {0};
	struct book_event event = {.op_slot = BOOK_OP_ALLOC};

	assert(view_read(&view, &recorded->book->reader, device, VIEW_DEAD) == 0);
	columns_table_deinit(&stream->table);
	while (view_next(&view, &it)) {
		/* Slots in between are dead. */
		while (stream->table.count < view_slot(&it)) {
			event.op_slot = stream->table.count << 8 | BOOK_OP_ALLOC;
			assert(columns_apply(&stream->table, &event) == 0);
		}
		event.op_slot = view_slot(&it) << 8 | BOOK_OP_ALLOC;
		event.record = *it.record;
		assert(columns_apply(&stream->table, &event) == 0);
		event.record = (struct book_record){0};
	}
	while (stream->table.count < recorder_page(recorded, device)->slots) {
		event.op_slot = stream->table.count << 8 | BOOK_OP_ALLOC;
		assert(columns_apply(&stream->table, &event) == 0);
	}
	memcpy(stream->hot, view.hot, sizeof(stream->hot));
	stream->last = view.number;
	view_deinit(&view);
}

void testing_recorded_gap(struct testing_recorded *recorded, uint32_t device)
{
	struct testing_stream *stream = &recorded->streams[device];
	struct recording_entry entry = {.kind = RECORDING_GAP, .count = 1};
	struct recording_gap gap = {0};
	struct book_hot before[BOOK_TYPES];

	memcpy(before, stream->hot, sizeof(before));
	recorder_now(recorded, &entry);
	entry.device = device;
	entry.first = stream->last + 1;
	recorder_jump(recorded, device);
	entry.last = stream->last;
	assert(entry.last >= entry.first);
	gap.events = entry.last - entry.first + 1;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_hot *after = &stream->hot[type];

		gap.allocs[type] = after->allocs - before[type].allocs;
		gap.frees[type] = after->frees - before[type].frees;
		gap.bytes[type] = (int64_t)(after->bytes - before[type].bytes);
		if (after->peak > before[type].peak) {
			gap.peak[type] = after->peak;
			gap.peak_stamp[type] = after->peak_time;
		}
		entry.bytes[type] = after->bytes;
		entry.high[type] =
			bits_max(bits_max(before[type].bytes, after->bytes), gap.peak[type]);
	}
	recorder_add(recorded, &entry, &(struct chunk_part){&gap, sizeof(gap)}, 1);
	testing_recorded_bytes(recorded);
	testing_recorded_keyframe(recorded, device);
}

void testing_recorded_ended(const struct testing_recorded *recorded, int status)
{
	struct recording_entry entry = {.kind = RECORDING_ENDED, .count = 1};
	const struct recording_ended ended = {
		.realtime = clock_ns(CLOCK_REALTIME), .status = status, .is_status_known = 1};

	recorder_now(recorded, &entry);
	recorder_add(recorded, &entry, &(struct chunk_part){&ended, sizeof(ended)}, 1);
}

void testing_recorded_json(const struct testing_recorded *recorded, uint32_t kind, const char *json)
{
	struct recording_entry entry = {.kind = kind};

	recorder_now(recorded, &entry);
	recorder_add(recorded, &entry, &(struct chunk_part){json, strlen(json)}, 1);
}
