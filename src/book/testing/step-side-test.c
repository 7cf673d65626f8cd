/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Single-stepping the parts of a book besides its shards: strings and shapes, incidents, marks,
 * devices, the words of the header. Each part must change at most once in an action, as seen after
 * every instruction: a reader gets the old or the new state, never a partial one.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-step.h"
#include "book/write/incident.h"

#define SIDE_DEVICE 3u

enum side_part {
	SIDE_STRINGS,
	SIDE_SHAPES,
	SIDE_INCIDENTS,       /* all but times and counts of repeats */
	SIDE_INCIDENT_COUNTS, /* of repeats */
	SIDE_INCIDENT_TIMES,
	SIDE_INCIDENT_NUMBER, /* how many there are, by the header */
	SIDE_MARKS,
	SIDE_MARK_NUMBER,
	SIDE_DEVICE_ENTRY,
	SIDE_STATE,
	SIDE_PARTS,
};

static const char *const side_names[SIDE_PARTS] = {
	"strings",         "shapes", "incidents",   "incident counts", "incident times",
	"incident number", "marks",  "mark number", "device",          "state",
};

struct side {
	struct testing_book book;
	uint64_t first_mark; /* the first one checked */
	uint64_t digest[SIDE_PARTS];
	uint32_t changes[SIDE_PARTS];
};

typedef void side_action(struct writer *writer);

static uint64_t side_mix(uint64_t digest, const void *data, size_t length)
{
	return hash_fold(digest ^ hash_bytes(data, length), HASH_K0) + HASH_K1;
}

/* Follows the strings by their lengths; each must be complete. */
static uint64_t side_strings(struct reader *reader)
{
	struct book_arena arena;
	uint64_t digest = 0;
	uint64_t id = 1;

	assert(reader_arena(reader, BOOK_ARENA_STRINGS, &arena) == 0);
	while (id * 8 < arena.used) {
		size_t length;
		const char *text = reader_string(reader, (uint32_t)id, &length);

		assert(text && length > 0);
		digest = side_mix(digest, text, length);
		id += bits_align_up(sizeof(struct book_string) + length, 8) / 8;
	}
	assert(id * 8 == arena.used);
	return digest;
}

static uint64_t side_shapes(struct reader *reader)
{
	struct book_arena arena;
	uint64_t digest = 0;

	assert(reader_arena(reader, BOOK_ARENA_SHAPES, &arena) == 0);
	for (uint32_t id = 1; id * sizeof(struct book_shape) < arena.used; id++) {
		struct book_shape shape = reader_shape(reader, id);

		assert(shape.banks > 0);
		digest = side_mix(digest, &shape, sizeof(shape));
	}
	return digest;
}

static void side_incidents(struct reader *reader, uint64_t *digest)
{
	for (uint32_t kind = 0; kind < BOOK_INCIDENT_KINDS; kind++) {
		for (uint32_t i = 0; i < 4; i++) {
			struct book_incident incident;

			if (reader_incident(reader, kind, i, &incident) < 0) {
				/* The header counts only committed ones. */
				assert(i >= reader->header.incident_count[kind]);
				break;
			}
			assert(incident.count > 0);
			digest[SIDE_INCIDENT_COUNTS] =
				side_mix(digest[SIDE_INCIDENT_COUNTS], &incident.count, 8);
			digest[SIDE_INCIDENT_TIMES] =
				side_mix(digest[SIDE_INCIDENT_TIMES], &incident.last_time, 8);
			incident.count = incident.last_time = 0;
			digest[SIDE_INCIDENTS] = side_mix(digest[SIDE_INCIDENTS] + kind, &incident,
							  sizeof(incident));
		}
	}
	digest[SIDE_INCIDENT_NUMBER] =
		side_mix(0, reader->header.incident_count, sizeof(reader->header.incident_count));
}

/* From mark @first on, which none of the checked actions overwrites. */
static void side_marks(struct reader *reader, uint64_t first, uint64_t *digest)
{
	uint64_t count = reader->header.mark_count;

	for (uint64_t n = first; n <= count; n++) {
		struct book_mark mark;
		int r = reader_mark(reader, n, &mark);

		/* Those that the header counts exist. */
		assert(r == 0 || n == count);
		if (r == 0)
			digest[SIDE_MARKS] = side_mix(digest[SIDE_MARKS], &mark, sizeof(mark));
	}
	digest[SIDE_MARK_NUMBER] = count;
}

/* False: being rewritten, which is not a state. */
static bool side_device(struct reader *reader, uint64_t *ret_digest)
{
	struct book_device device;
	int r = reader_device(reader, SIDE_DEVICE, &device);

	assert(r == 0 || r == -ENOENT || r == -EAGAIN);
	*ret_digest = r == 0 ? side_mix(0, &device, sizeof(device)) : 0;
	return r != -EAGAIN;
}

static void side_look(struct side *side, const char *when)
{
	uint64_t digest[SIDE_PARTS] = {0};
	struct reader reader;

	/* Nothing is kept from the previous read. */
	assert(reader_init(&reader, &side->book.file.file) == 0);
	digest[SIDE_STRINGS] = side_strings(&reader);
	digest[SIDE_SHAPES] = side_shapes(&reader);
	side_incidents(&reader, digest);
	side_marks(&reader, side->first_mark, digest);
	if (!side_device(&reader, &digest[SIDE_DEVICE_ENTRY]))
		digest[SIDE_DEVICE_ENTRY] = side->digest[SIDE_DEVICE_ENTRY];
	digest[SIDE_STATE] = reader.header.state * 2 + reader.header.paused;
	assert(reader.header.state != BOOK_STATE_CLOSED || reader.header.closed_time);
	reader_deinit(&reader);

	for (uint32_t part = 0; part < SIDE_PARTS; part++) {
		if (digest[part] == side->digest[part])
			continue;
		side->digest[part] = digest[part];
		if (++side->changes[part] > 1)
			printf("%s changed again in %s\n", side_names[part], when);
		assert(side->changes[part] <= 1);
	}
}

static void side_unknown_free(struct writer *writer)
{
	struct shard_buffer who = testing_buffer(0, 0x9000, 0);

	who.name = intern_string(writer, "freer", BOOK_NAME_MAX);
	writer_free_buffer(writer, SIDE_DEVICE, &who);
}

static void side_double_free(struct writer *writer)
{
	struct shard_buffer who = testing_buffer(0, 0x1000, 64);

	writer_alloc(writer, SIDE_DEVICE, &who, 0);
	writer_free_buffer(writer, SIDE_DEVICE, &who);
	writer_free_buffer(writer, SIDE_DEVICE, &who);
}

static void side_size_change(struct writer *writer)
{
	struct shard_buffer who = testing_buffer(0, 0x2000, 64);

	writer_alloc(writer, SIDE_DEVICE, &who, 0);
	who.size = 128;
	writer_alloc(writer, SIDE_DEVICE, &who, 0);
}

static void side_failed(struct writer *writer)
{
	struct shard_buffer who = testing_buffer(1, 0, 1u << 30);

	writer_failed(writer, SIDE_DEVICE, &who, &(struct writer_lack){.largest_free = 4096});
}

static void side_string(struct writer *writer)
{
	assert(intern_string(writer, "a name of some length, longer than a few words",
			     BOOK_NAME_MAX));
}

/* The longest possible string: it ends in the page after the arena's first. */
static void side_long_string(struct writer *writer)
{
	static char text[BOOK_PATH_MAX + 1];

	memset(text, text[0] ? text[0] + 1 : 'a', BOOK_PATH_MAX);
	assert(intern_string(writer, text, BOOK_PATH_MAX));
}

static void side_shape(struct writer *writer)
{
	const struct book_shape shape = {.size_per_bank = 512, .banks = 12, .first_bank = 3};

	assert(intern_shape(writer, &shape));
}

static void side_mark(struct writer *writer)
{
	writer_mark(writer, 1, 2, 3);
}

static void side_marks_many(struct writer *writer)
{
	for (int i = 0; i < 254; i++)
		writer_mark(writer, 1, 2, 3);
}

static void side_declare(struct writer *writer)
{
	static struct writer_device facts = {.arch = "wormhole", .card = "n300", .cores = 64};

	facts.unique_id++;
	facts.memory[0].capacity += 1u << 30;
	writer_declare(writer, SIDE_DEVICE, &facts);
}

static void side_close(struct writer *writer)
{
	writer_close_device(writer, SIDE_DEVICE);
}

static void side_pause(struct writer *writer)
{
	writer_set_paused(writer, true);
}

static const struct {
	const char *name;
	side_action *run;
	bool walked;
} side_actions[] = {
	{"string", side_string, true},
	{"string again", side_string, true},
	{"long string", side_long_string, true},
	{"long string", side_long_string, true},
	{"long string", side_long_string, true},
	{"long string in the next page", side_long_string, true},
	{"shape", side_shape, true},
	{"unknown free", side_unknown_free, true},
	{"unknown free again", side_unknown_free, true},
	{"double free", side_double_free, true},
	{"double free again", side_double_free, true},
	{"size change", side_size_change, true},
	{"failed", side_failed, true},
	{"mark", side_mark, true},
	{"mark again", side_mark, true},
	{"marks", side_marks_many, false},
	{"mark over an old one", side_mark, true},
	{"mark over another", side_mark, true},
	{"declare", side_declare, true},
	{"declare again", side_declare, true},
	{"close device", side_close, true},
	{"pause", side_pause, true},
	{"goodbye", writer_goodbye, true},
};

static void side_act(struct testing_stepper *stepper, uint32_t i)
{
	struct side *side = stepper->context;

	if (i == 0)
		testing_book_write(&side->book);
	else
		side_actions[i - 1].run(side->book.writer);
}

static bool side_is_walked(struct testing_stepper *stepper, uint32_t i)
{
	return i > 0 && side_actions[i - 1].walked;
}

static void side_check(struct testing_stepper *stepper, uint32_t i)
{
	side_look(stepper->context, side_actions[i - 1].name);
}

UNIT_LONG(side_areas_change_atomically_at_every_instruction, 300)
{
	static const struct testing_stepper_ops ops = {
		.act = side_act, .is_walked = side_is_walked, .check = side_check};
	struct side side = {0};
	struct testing_stepper stepper = {
		.ops = &ops, .count = 1 + ARRAY_SIZE(side_actions), .context = &side};
	uint32_t changed[SIDE_PARTS] = {0};
	uint32_t i;

	testing_book_init(&side.book, TESTING_SIZE, BOOK_RING_MIN);
	testing_stepper_start(&stepper);
	while (testing_stepper_next(&stepper, &i)) {
		if (!side.book.has_reader)
			testing_book_read(&side.book);
		assert(reader_refresh(&side.book.reader) == 0);
		side.first_mark = bits_max(side.book.reader.header.mark_count, 200) - 200;
		/* Changes since the last step are not checked. */
		memset(side.changes, 0, sizeof(side.changes));
		side_look(&side, "between");
		memset(side.changes, 0, sizeof(side.changes));
		testing_stepper_walk(&stepper);
		for (uint32_t part = 0; part < SIDE_PARTS; part++)
			changed[part] += side.changes[part];
	}
	printf("%" PRIu64 " instructions\n", stepper.steps);
	/* 6 strings, one of them from the unknown free; a repeat raises a count and a time. */
	assert(changed[SIDE_STRINGS] == 6 && changed[SIDE_SHAPES] == 1);
	assert(changed[SIDE_INCIDENTS] == 4 && changed[SIDE_INCIDENT_NUMBER] == 4);
	assert(changed[SIDE_INCIDENT_COUNTS] == 6 && changed[SIDE_INCIDENT_TIMES] == 6);
	assert(changed[SIDE_MARKS] >= 3 && changed[SIDE_MARK_NUMBER] == 4);
	assert(changed[SIDE_DEVICE_ENTRY] == 3 && changed[SIDE_STATE] == 2);
	testing_book_deinit(&side.book);
}
