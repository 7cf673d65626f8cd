/* SPDX-License-Identifier: Apache-2.0 */

/* Header, devices, incidents, marks and arenas of a book, copied and checked. */

#include "book/read/reader.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/process/time-offsets.h"
#include "book/format/event.h"

#define READER_ARENA_SEGMENT ((uint64_t)BOOK_ARENA_UNITS * BOOK_UNIT)
#define READER_TRIES 8
#define READER_FRAMES 31u /* of a stack that are read with its head: 512 bytes */

const char *reader_strerror(int result)
{
	switch (result) {
	case 0:
		return "ok";
	case READER_NOT_YET:
		return "no book, or one that is still being made";
	case READER_BAD_VERSION:
		return "made by a later version of the library: update ttmem";
	case READER_BAD_SIZE:
		return "size is not that of a book";
	case READER_BAD_LAYOUT:
		return "header does not describe a book";
	default:
		return result < 0 ? strerrordesc_np(-result) : "unknown";
	}
}

static bool reader_layout_is_ours(const struct book_header *header)
{
	uint32_t ring = header->ring_events;

	return header->header_size == sizeof(*header) &&
	       header->record_size == sizeof(struct book_record) &&
	       header->event_size == sizeof(struct book_event) &&
	       header->shard_size == sizeof(struct book_shard) && ring >= BOOK_RING_MIN &&
	       ring <= BOOK_RING_MAX && (ring & (ring - 1)) == 0;
}

int reader_init(struct reader *reader, struct book_file *file)
{
	struct book_header header;
	uint64_t magic;
	int r;

	if (file->size < BOOK_SIZE_MIN || file->size > BOOK_SIZE_MAX || file->size % BOOK_UNIT)
		return READER_BAD_SIZE;
	r = file_read(file, offsetof(struct book_header, magic), &magic, sizeof(magic));
	if (r < 0)
		return r;
	if (magic != BOOK_MAGIC)
		return READER_NOT_YET;
	/* Pairs with the release of magic in writer_new(): the rest is complete now. */
	r = file_read(file, 0, &header, sizeof(header));
	if (r < 0)
		return r;
	if (header.version < BOOK_VERSION_FIRST || header.version > BOOK_VERSION)
		return READER_BAD_VERSION;
	if (header.file_size != file->size)
		return READER_BAD_SIZE;
	if (!reader_layout_is_ours(&header))
		return READER_BAD_LAYOUT;
	header.cmdline_length = (uint32_t)bits_min(header.cmdline_length, sizeof(header.cmdline));
	/* From here on both are as the machine's, whatever the owner sees. */
	header.start_ticks = time_offsets_ticks(header.start_ticks, header.boottime_offset);
	header.monotonic_start -= (uint64_t)header.monotonic_offset;
	header.comm[sizeof(header.comm) - 1] = '\0';
	header.library[sizeof(header.library) - 1] = '\0';
	*reader = (struct reader){.file = file, .header = header};
	return 0;
}

void reader_deinit(struct reader *reader)
{
	free(reader->strings.bytes);
	free(reader->shapes.bytes);
	*reader = (struct reader){0};
}

int reader_refresh(struct reader *reader)
{
	const size_t from = offsetof(struct book_header, state);

	/* Pairs with the release in writer_changed(): later reads see all counted changes. */
	return file_read(reader->file, from, (uint8_t *)&reader->header + from,
			 sizeof(reader->header) - from);
}

int64_t reader_next_shard(struct reader *reader, uint32_t device)
{
	while (device < BOOK_DEVICES) {
		int64_t data = file_next_data(reader->file, book_shard_offset(device));
		uint32_t state;
		int r;

		if (data < 0)
			return data;
		if ((uint64_t)data >= BOOK_POOL_OFFSET)
			return -ENXIO;
		device = (uint32_t)(((uint64_t)data - BOOK_SHARDS_OFFSET) /
				    sizeof(struct book_shard));
		r = file_read(reader->file,
			      book_shard_offset(device) + offsetof(struct book_shard, state),
			      &state, sizeof(state));
		if (r < 0)
			return r;
		if (state == 1)
			return device; /* pairs with the release in room_make(): page complete */
		device++;
	}
	return -ENXIO;
}

int reader_declared(struct reader *reader, uint32_t first, uint32_t count, uint32_t *ret_devices)
{
	struct book_device entries[READER_DECLARED_MAX];
	uint32_t devices = 0;
	int r;

	assert(count <= READER_DECLARED_MAX && first + count <= BOOK_DEVICES);
	r = file_read(reader->file, book_device_offset(first), entries, count * sizeof(entries[0]));
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++)
		devices |= (uint32_t)(entries[i].generation != 0) << i;
	*ret_devices = devices;
	return 0;
}

int reader_device(struct reader *reader, uint32_t device, struct book_device *ret_device)
{
	uint64_t offset = book_device_offset(device);
	struct book_device entry;
	uint32_t again;
	int r;

	for (int i = 0; i < READER_TRIES; i++) {
		uint32_t before;

		r = file_read(reader->file, offset, &before, sizeof(before));
		if (r < 0)
			return r;
		if (before == 0)
			return -ENOENT;
		/* Pairs with the release of an even generation in writer_declare(). */
		r = file_read(reader->file, offset, &entry, sizeof(entry));
		if (r < 0)
			return r;
		/* Pairs with the barrier after the odd one there. */
		r = file_read(reader->file, offset, &again, sizeof(again));
		if (r < 0)
			return r;
		if (before == again && before % 2 == 0) {
			entry.arch[sizeof(entry.arch) - 1] = '\0';
			entry.card[sizeof(entry.card) - 1] = '\0';
			*ret_device = entry;
			return 0;
		}
	}
	return -EAGAIN;
}

int reader_incident(struct reader *reader, uint32_t kind, uint32_t index,
		    struct book_incident *ret_incident)
{
	struct book_incident incident;
	uint64_t commit;
	int r;

	if (kind >= BOOK_INCIDENT_KINDS || index >= BOOK_INCIDENTS_PER_KIND)
		return -ENOENT;
	/* Pairs with the release of the commit word in incident.c: the rest is complete. */
	r = file_read(reader->file, book_incident_offset(kind, index), &commit, sizeof(commit));
	if (r < 0)
		return r;
	if (commit == 0)
		return -ENOENT;
	r = file_read(reader->file, book_incident_offset(kind, index), &incident, sizeof(incident));
	if (r < 0)
		return r;
	*ret_incident = incident;
	return 0;
}

int reader_mark(struct reader *reader, uint64_t number, struct book_mark *ret_mark)
{
	uint64_t offset = BOOK_MARKS_OFFSET + number % BOOK_MARKS * sizeof(struct book_mark);
	uint64_t before, again;
	struct book_mark mark;
	int r;

	r = file_read(reader->file, offset, &before, sizeof(before));
	if (r < 0)
		return r;
	/* Pairs with the release of the commit word in writer_mark(): the mark is complete. */
	r = file_read(reader->file, offset, &mark, sizeof(mark));
	if (r < 0)
		return r;
	/* Pairs with the barrier after its 0 there: nothing newer was copied. */
	r = file_read(reader->file, offset, &again, sizeof(again));
	if (r < 0)
		return r;
	if (before == 0 || before != number + 1 || again != before)
		return -ENOENT;
	*ret_mark = mark;
	return 0;
}

/* Whether each segment that `used` covers has a directory entry. */
static bool reader_arena_is_whole(const struct book_arena *arena)
{
	for (uint64_t i = 0; i * READER_ARENA_SEGMENT < arena->used; i++) {
		if (arena->directory[i] == 0)
			return false;
	}
	return true;
}

int reader_arena(struct reader *reader, uint32_t kind, struct book_arena *ret_arena)
{
	struct book_arena arena;

	if (kind >= BOOK_ARENA_COUNT)
		return -EINVAL;
	for (int i = 0; i < 2; i++) {
		int r = file_read(reader->file, BOOK_ARENAS_OFFSET + kind * sizeof(arena), &arena,
				  sizeof(arena));

		if (r < 0)
			return r;
		if (arena.used > BOOK_ARENA_SEGMENTS * READER_ARENA_SEGMENT)
			return -EBADMSG;
		/*
		 * An entry may have been copied before it was set, and `used` after. Pairs with the
		 * releases in intern_commit() and intern_grow(): the second copy has all that the
		 * first `used` covers.
		 */
		if (reader_arena_is_whole(&arena))
			break;
	}
	*ret_arena = arena;
	return 0;
}

int reader_is_solid(struct reader *reader, uint64_t offset, uint64_t end)
{
	int64_t hole;

	if (offset < reader->solid_from || offset > reader->solid_to)
		reader->solid_from = reader->solid_to = offset;
	if (end <= reader->solid_to)
		return 1;
	hole = file_next_hole(reader->file, reader->solid_to);
	if (hole < 0)
		return (int)hole;
	reader->solid_to = bits_max(reader->solid_to, (uint64_t)hole);
	return end <= reader->solid_to;
}

bool reader_segment_is(struct reader *reader, uint32_t unit, uint32_t units, uint32_t owner,
		       uint32_t kind)
{
	struct book_segment segment;

	if (unit < BOOK_POOL_FIRST_UNIT ||
	    ((uint64_t)unit + units) * BOOK_UNIT > reader->file->size)
		return false;
	if (file_read(reader->file, BOOK_SEGMENTS_OFFSET + (uint64_t)unit * sizeof(segment),
		      &segment, sizeof(segment)) < 0)
		return false;
	return segment.owner == owner && segment.kind == kind && segment.units == units;
}

/* Whether all segments belong to the arena. They ascend, like those of records. */
static bool reader_arena_is_sane(struct reader *reader, uint32_t kind,
				 const struct book_arena *arena)
{
	uint64_t segments = (arena->used + READER_ARENA_SEGMENT - 1) / READER_ARENA_SEGMENT;
	uint64_t free_from = 0;

	for (uint64_t i = 0; i < segments; i++) {
		uint32_t unit = arena->directory[i];

		if (unit < free_from ||
		    !reader_segment_is(reader, unit, BOOK_ARENA_UNITS, kind, BOOK_SEGMENT_ARENA))
			return false;
		free_from = (uint64_t)unit + BOOK_ARENA_UNITS;
	}
	return true;
}

/* Reads what was added to the arena since the last call. */
static int reader_load(struct reader *reader, uint32_t kind, struct reader_copy *copy)
{
	struct book_arena arena;
	uint64_t offset = copy->used;
	uint8_t *bytes;
	int r;

	r = reader_arena(reader, kind, &arena);
	if (r < 0)
		return r;
	if (arena.used <= offset)
		return 0;
	/* One failure may be a race, but a hostile book must not cost a full read per row. */
	if (copy->refused >= READER_TRIES)
		return -EBADMSG;
	if (!reader_arena_is_sane(reader, kind, &arena)) {
		copy->refused++;
		return -EBADMSG;
	}
	copy->refused = 0;
	bytes = realloc(copy->bytes, arena.used);
	if (!bytes)
		return -ENOMEM;
	copy->bytes = bytes;
	while (offset < arena.used) {
		uint64_t segment = offset / READER_ARENA_SEGMENT;
		uint64_t within = offset % READER_ARENA_SEGMENT;
		uint64_t length = bits_min(arena.used - offset, READER_ARENA_SEGMENT - within);

		r = file_read(reader->file, book_unit_offset(arena.directory[segment]) + within,
			      bytes + offset, length);
		if (r < 0)
			return r;
		offset += length;
	}
	copy->used = arena.used;
	return 0;
}

const char *reader_string(struct reader *reader, uint32_t id, size_t *ret_length)
{
	uint64_t offset = (uint64_t)id * 8;
	struct book_string string;

	if (id == 0)
		return NULL;
	if (offset >= reader->strings.used &&
	    reader_load(reader, BOOK_ARENA_STRINGS, &reader->strings) < 0)
		return NULL;
	if (offset + sizeof(string) > reader->strings.used)
		return NULL;
	memcpy(&string, reader->strings.bytes + offset, sizeof(string));
	if (string.length > BOOK_PATH_MAX ||
	    offset + sizeof(string) + string.length > reader->strings.used)
		return NULL;
	*ret_length = string.length;
	return (const char *)reader->strings.bytes + offset + sizeof(string);
}

_Static_assert(BOOK_ARENA_SEGMENTS <= 64, "a bit for each segment");

/*
 * Where byte @offset of an arena is in the file, and how many bytes of the arena are there and in
 * the same segment. 0, -ENOENT if there are fewer than @least, or another negative errno.
 */
static int reader_arena_find(struct reader *reader, uint32_t kind, uint64_t offset, size_t least,
			     uint64_t *ret_at, uint64_t *ret_length)
{
	struct book_arena *arena = &reader->arenas[kind];
	uint64_t segment = offset / READER_ARENA_SEGMENT, within = offset % READER_ARENA_SEGMENT;
	uint64_t bit = UINT64_C(1) << segment % BOOK_ARENA_SEGMENTS;

	if (offset + least > arena->used) {
		int r = reader_arena(reader, kind, arena);

		reader->segments_checked[kind] = 0;
		if (r < 0) {
			*arena = (struct book_arena){0};
			return r;
		}
	}
	if (segment >= BOOK_ARENA_SEGMENTS || offset + least > arena->used ||
	    within + least > READER_ARENA_SEGMENT)
		return -ENOENT;
	if (!(reader->segments_checked[kind] & bit) &&
	    !reader_segment_is(reader, arena->directory[segment], BOOK_ARENA_UNITS, kind,
			       BOOK_SEGMENT_ARENA))
		return -ENOENT;
	reader->segments_checked[kind] |= bit;
	*ret_at = book_unit_offset(arena->directory[segment]) + within;
	*ret_length = bits_min(arena->used - offset, READER_ARENA_SEGMENT - within);
	return 0;
}

uint32_t reader_find_string(struct reader *reader, const char *prefix, uint32_t after)
{
	size_t wanted = strlen(prefix), length = 0;
	uint64_t offset = (uint64_t)after * 8;
	const char *bytes;

	if (after && !reader_string(reader, after, &length))
		return 0;
	/* A gap at the end of a segment is read as empty strings. */
	do {
		offset += bits_align_up(sizeof(struct book_string) + length, 8);
		length = 0;
		bytes = reader_string(reader, (uint32_t)(offset / 8), &length);
	} while (bytes && (length < wanted || memcmp(bytes, prefix, wanted) != 0));
	return bytes ? (uint32_t)(offset / 8) : 0;
}

/* Reads @length bytes at @offset of an arena, all in one segment. */
static int reader_arena_read(struct reader *reader, uint32_t kind, uint64_t offset, void *ret_bytes,
			     size_t length)
{
	uint64_t at, there;
	int r = reader_arena_find(reader, kind, offset, length, &at, &there);

	return r < 0 ? r : file_read(reader->file, at, ret_bytes, length);
}

struct book_shape reader_shape(struct reader *reader, uint32_t id)
{
	struct book_shape shape = {0};
	uint64_t end = ((uint64_t)id + 1) * sizeof(shape);

	if (id == 0)
		return shape;
	/* A shape is there before the event that names it: only invalid books miss, and at every event. */
	if (end > reader->shapes.used && reader->shapes.misses < READER_TRIES) {
		(void)reader_load(reader, BOOK_ARENA_SHAPES, &reader->shapes); /* or it has none */
		reader->shapes.misses += end > reader->shapes.used;
	}
	if (end <= reader->shapes.used)
		memcpy(&shape, reader->shapes.bytes + end - sizeof(shape), sizeof(shape));
	return shape;
}

void reader_retry(struct reader *reader)
{
	reader->shapes.misses = 0;
}

bool reader_has_warm(const struct reader *reader)
{
	return reader->header.version >= BOOK_VERSION_SPACES;
}

uint64_t reader_occupied(struct reader *reader, const struct book_record *record)
{
	struct book_shape shape;

	if (!reader_has_warm(reader))
		return EVENT_OCCUPIED_UNKNOWN;
	shape = reader_shape(reader, record->shape);
	return event_occupied(record, &shape);
}

size_t reader_stack(struct reader *reader, uint32_t id, struct book_stack *ret_head,
		    struct book_frame *ret_frames, size_t max)
{
	struct {
		struct book_stack head;
		struct book_frame frames[READER_FRAMES];
	} copy;
	uint64_t offset = (uint64_t)id * sizeof(copy.head), at, length;
	size_t count, copied;

	if (id == 0 || reader_arena_find(reader, BOOK_ARENA_STACKS, offset, sizeof(copy.head), &at,
					 &length) < 0)
		return 0;
	/* Most stacks are in it with all of their frames. */
	length = bits_min(length, sizeof(copy));
	if (file_read(reader->file, at, &copy, length) < 0)
		return 0;
	count = bits_min((size_t)copy.head.native + copy.head.python, max);
	copied = (length - sizeof(copy.head)) / sizeof(copy.frames[0]);
	if (count <= copied)
		memcpy(ret_frames, copy.frames, count * sizeof(*ret_frames));
	else if (reader_arena_read(reader, BOOK_ARENA_STACKS, offset + sizeof(copy.head),
				   ret_frames, count * sizeof(*ret_frames)) < 0)
		return 0;
	if (count > 0)
		*ret_head = copy.head;
	return count;
}

int reader_module(struct reader *reader, uint32_t id, struct book_module *ret_module)
{
	struct book_module module;
	int r;

	if (id == 0)
		return -ENOENT;
	r = reader_arena_read(reader, BOOK_ARENA_MODULES, (uint64_t)id * sizeof(module), &module,
			      sizeof(module));
	if (r < 0)
		return r;
	if (module.build_id_length > sizeof(module.build_id))
		module.build_id_length = 0; /* an invalid length counts as none */
	*ret_module = module;
	return 0;
}
