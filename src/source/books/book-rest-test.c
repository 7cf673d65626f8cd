/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A book with a rest gives the same totals as one that is read whole and summed up afterwards; and
 * where nothing has changed, next to nothing is read.
 */

#include "source/books/book-rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/testing/testing-memory.h"
#include "model/cards/declared.h"
#include "model/snapshot-request.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

#define USED 20u /* devices that have buffers */
#define ROUNDS 400u

struct world {
	struct testing_memory memory;
	struct scan_book book; /* with a rest */
	struct snapshot *cards;
	struct view view;
	uint32_t reads;
};

static void count_read(struct testing_memory *memory)
{
	((struct world *)memory->context)->reads++;
}

static void open_book(struct world *world, struct scan_book *ret_book)
{
	*ret_book = (struct scan_book){
		.owner = {.id.pid = 7, .comm = "wide", .real_uid = 5}, .alive = true, .uid = 5};
	assert(reader_init(&ret_book->reader, &world->memory.file) == 0);
}

static void close_book(struct scan_book *book)
{
	totals_cache_deinit(&book->totals_cache);
	book_rest_drop(book);
	reader_deinit(&book->reader);
}

static struct world *begin(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert(world);
	testing_memory_init(&world->memory,
			    BOOK_POOL_OFFSET + (uint64_t)(29 * USED + 16) * BOOK_UNIT);
	testing_memory_write(&world->memory, BOOK_RING_MIN);
	world->memory.context = world;
	world->memory.before_read = count_read;
	world->cards = snapshot_new(1);
	assert(world->cards);
	open_book(world, &world->book);
	return world;
}

static void end(struct world *world)
{
	close_book(&world->book);
	snapshot_free(world->cards);
	view_deinit(&world->view);
	testing_memory_deinit(&world->memory);
	free(world);
}

static void declare(struct world *world, uint32_t device, uint64_t id)
{
	const struct writer_device facts = {
		.unique_id = id, .arch = "evil", .memory[0].capacity = UINT64_MAX};

	writer_declare(world->memory.writer, device, &facts);
}

static void alloc(struct world *world, uint32_t device, uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(0, address, 64);

	writer_alloc(world->memory.writer, device, &buffer, 0);
}

static size_t renew(struct world *world, size_t keep)
{
	const struct book_rest_wish wish = {.cards = world->cards, .keep = keep};
	size_t looks = 0;

	assert(book_rest_renew(&world->book, &wish, &world->view, &looks) == 0);
	return looks;
}

static struct snapshot *take(struct world *world, struct scan_book *book)
{
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot &&
	       book_collect(book, &(struct snapshot_request){0}, &world->view, snapshot) == 0);
	return snapshot;
}

static const struct snapshot_part *sum_of(const struct snapshot *snapshot)
{
	const struct snapshot_process *process = &snapshot->processes[0];
	const struct snapshot_part *last = &process->parts[process->part_count - 1];

	assert(process->part_count > 0);
	return last->summed ? last : NULL;
}

/* What a reader without a rest finds in the devices that the rest has. */
static void expect(struct world *world, struct snapshot_part *ret_sum, size_t *ret_refused)
{
	struct scan_book whole;
	struct snapshot *snapshot;

	*ret_sum = (struct snapshot_part){0};
	*ret_refused = 0;
	open_book(world, &whole);
	snapshot = take(world, &whole);
	for (size_t i = 0; i < snapshot->processes[0].part_count; i++) {
		struct snapshot_part *part = &snapshot->processes[0].parts[i];

		*ret_refused += declared_refuse_part(part);
		if (book_rest_has(world->book.rest, part->device))
			declared_add(ret_sum, part);
	}
	snapshot_free(snapshot);
	close_book(&whole);
}

static void check(struct world *world)
{
	struct snapshot *snapshot = take(world, &world->book);
	struct snapshot_part sum;
	const struct snapshot_part *mine = sum_of(snapshot);
	size_t refused;

	expect(world, &sum, &refused);
	assert(mine ? mine->summed == sum.summed && mine->device == sum.device : !sum.summed);
	for (uint32_t type = 0; mine && type < BOOK_TYPES; type++) {
		assert(mine->memory[type].used == sum.memory[type].used);
		assert(mine->memory[type].buffers == sum.memory[type].buffers);
		assert(mine->memory[type].allocs == sum.memory[type].allocs);
		assert(mine->memory[type].frees == sum.memory[type].frees);
	}
	for (size_t i = 0; i < snapshot->processes[0].part_count; i++)
		refused -= declared_refuse_part(&snapshot->processes[0].parts[i]);
	assert(refused == snapshot->processes[0].capacities_refused);
	assert(snapshot->processes[0].exact && snapshot->devices_old == 0);
	snapshot_free(snapshot);
}

UNIT(an_unchanged_rest_costs_a_look_at_what_was_used)
{
	struct world *world = begin();

	for (uint32_t device = 0; device < BOOK_DEVICES; device++)
		declare(world, device, 1000 + device);
	alloc(world, 0, 0x1000); /* not in the rest */
	alloc(world, 100, 0x1000);
	alloc(world, 900, 0x1000);
	assert(renew(world, 8) == BOOK_DEVICES + 3);
	check(world);
	world->reads = 0;
	assert(renew(world, 8) == 1 + 2 && world->reads == 1 + 2);
	/* Of the singles there is one with counters; the rest is not read. */
	world->reads = 0;
	snapshot_free(take(world, &world->book));
	assert(world->reads == 1 + 1);
	alloc(world, 100, 0x2000);
	assert(renew(world, 8) > BOOK_DEVICES);
	check(world);
	declare(world, 900, 5);
	assert(renew(world, 8) > BOOK_DEVICES);
	check(world);
	end(world);
}

static void step(struct world *world, struct testing_rng *rng)
{
	uint32_t device = testing_below(rng, USED) * 5;
	struct shard_buffer who = testing_buffer(testing_below(rng, BOOK_TYPES),
						 0x1000 * (1 + testing_below(rng, 20)), 64);

	switch (testing_below(rng, 8)) {
	case 0:
		declare(world, testing_below(rng, BOOK_DEVICES), 1 + testing_below(rng, 40));
		break;
	case 1:
		writer_close_device(world->memory.writer, device);
		break;
	case 2:
		break; /* no change */
	case 3:
		writer_free_buffer(world->memory.writer, device, &who);
		break;
	default:
		writer_alloc(world->memory.writer, device, &who, 0);
	}
}

/* Frees of nothing are no device's: see stray-frees.h; here all devices are declared. */
UNIT(every_change_invalidates_the_rest)
{
	struct world *world = begin();
	struct testing_rng rng = testing_rng_new();
	uint32_t rounds = testing_quick() ? ROUNDS / 20 : ROUNDS;

	for (uint32_t i = 0; i < USED; i++)
		declare(world, i * 5, 1 + i);
	for (uint32_t i = 0; i < rounds; i++) {
		for (uint32_t n = testing_below(&rng, 4); n > 0; n--)
			step(world, &rng);
		renew(world, testing_below(&rng, 20) ? 8 : testing_below(&rng, 100));
		check(world);
	}
	end(world);
}

UNIT(what_may_be_a_card_is_never_in_the_rest)
{
	const struct snapshot_card cards[] = {
		{.number = 40, .unique_id = 7},
		{.number = 0, .serial = 0x1234},
	};
	struct world *world = begin();

	for (size_t i = 0; i < 2; i++)
		assert(snapshot_add_card(world->cards, &cards[i]) == 0);
	for (uint32_t device = 0; device < 100; device++)
		declare(world, device, 100000 + device);
	declare(world, 50, 7);
	declare(world, 60, 0x1234 << 8 | 1);
	renew(world, 0);
	for (uint32_t device = 0; device < 100; device++) {
		bool may_be = device < 2 || device == 40 || device == 50 || device == 60;

		assert(book_rest_has(world->book.rest, device) == !may_be);
	}
	check(world);
	/* Other cards: all is looked at again. */
	assert(renew(world, 0) == 1);
	snapshot_free(world->cards);
	world->cards = snapshot_new(1);
	assert(renew(world, 0) == 100);
	assert(book_rest_has(world->book.rest, 50));
	end(world);
}

UNIT(frees_of_nothing_stay_frees_of_nothing)
{
	struct world *world = begin();
	struct shard_buffer buffer = testing_buffer(0, 0x1000, 64);
	struct snapshot *snapshot;

	declare(world, 0, 1);
	alloc(world, 0, 0x1000);
	writer_free_buffer(world->memory.writer, 9, &buffer);
	renew(world, 1);
	snapshot = take(world, &world->book);
	assert(snapshot->processes[0].stray_frees == 1 && !sum_of(snapshot));
	snapshot_free(snapshot);
	end(world);
}

UNIT(an_old_sum_is_said_to_be_old)
{
	struct world *world = begin();
	const struct snapshot_part *sum;
	struct snapshot *snapshot;

	for (uint32_t device = 0; device < 100; device++)
		declare(world, device, 1000 + device);
	renew(world, 8);
	alloc(world, 99, 0x1000);
	world->book.rest->is_current = false;
	snapshot = take(world, &world->book);
	assert(snapshot->devices_old == 92 && !snapshot->processes[0].exact);
	sum = sum_of(snapshot);
	assert(sum && sum->memory[0].used == 0);
	snapshot_free(snapshot);
	/* Buffers are always read whole, and so is what an exited process left. */
	world->book.alive = false;
	snapshot = take(world, &world->book);
	assert(snapshot->devices_old == 0 && snapshot->processes[0].part_count == 100);
	snapshot_free(snapshot);
	end(world);
}
