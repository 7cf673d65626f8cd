/* SPDX-License-Identifier: Apache-2.0 */

/* How much is read of the books of a user with too many devices, and whose turn it is. */

#include "daemon/registry/wide-books.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "daemon/registry/tracked.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/book-rest.h"

#define WIDE 6u /* books of the user with too many */
#define BOOKS (WIDE + 1)
#define MALLORY 1000u
#define ALICE 1001u
#define BOB 1002u /* has as many, in the tests about him */

struct world {
	struct testing_book books[BOOKS];
	struct book_list *list;
	struct snapshot *latest;
	struct view view;
};

static void declare(struct world *world, uint32_t book, uint32_t device)
{
	const struct writer_device facts = {.unique_id = (book + 1) * 10000 + device,
					    .arch = "evil"};

	writer_declare(world->books[book].writer, device, &facts);
}

static void alloc(struct world *world, uint32_t book, uint32_t device, uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(0, address, 100);

	writer_alloc(world->books[book].writer, device, &buffer, 0);
}

static void add_book(struct world *world, uint32_t index)
{
	struct testing_book *book = &world->books[index];
	uint32_t user = index < WIDE ? MALLORY : ALICE;
	struct scan_book *found;
	char path[64];

	testing_book_init(book, TESTING_SIZE, 1024);
	testing_book_write(book);
	for (uint32_t device = 0; device < (index < WIDE ? BOOK_DEVICES : 1); device++)
		declare(world, index, device);
	alloc(world, index, index < WIDE ? BOOK_DEVICES - 1 : 0, 0x1000);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", book->fd);
	assert(scan_book_new_consume(&found, open(path, O_RDONLY | O_CLOEXEC)) == 0);
	found->uid = user;
	found->alive = true;
	found->owner = (struct proc_facts){
		.id.pid = 100 + index, .ns_pid = 100 + index, .real_uid = user, .comm = "wide"};
	world->list->list[index] = tracked_new_consume(found, 0, "");
	assert(world->list->list[index]);
}

/* As the collector does it. */
static struct snapshot *take(struct world *world)
{
	static const struct snapshot_request totals = {0};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot);
	assert(wide_books_prepare(world->list, world->latest, &world->view, snapshot) == 0);
	for (size_t i = 0; i < world->list->count; i++)
		assert(tracked_collect(world->list->list[i], &totals, &world->view, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0);
	snapshot_free(world->latest);
	world->latest = snapshot;
	return snapshot;
}

static struct world *begin(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert(world);
	world->list = calloc(1, sizeof(*world->list) + BOOKS * sizeof(struct tracked *));
	assert(world->list);
	world->list->refs = 1;
	world->list->count = BOOKS;
	for (uint32_t i = 0; i < BOOKS; i++)
		add_book(world, i);
	return world;
}

static void end(struct world *world)
{
	snapshot_free(world->latest);
	book_list_unref(world->list);
	for (uint32_t i = 0; i < BOOKS; i++)
		testing_book_deinit(&world->books[i]);
	view_deinit(&world->view);
	free(world);
}

static uint64_t used(const struct snapshot *snapshot, uint32_t user)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		uint64_t bytes, buffers;

		snapshot_process_totals(&snapshot->processes[i], &bytes, &buffers);
		sum += snapshot->processes[i].user_id == user ? bytes : 0;
	}
	return sum;
}

static size_t parts(const struct snapshot *snapshot)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->process_count; i++)
		count += snapshot->processes[i].part_count;
	return count;
}

static bool has_note(const struct snapshot *snapshot, const char *words)
{
	for (size_t i = 0; i < snapshot->note_count; i++) {
		if (strstr(snapshot->notes[i], words))
			return true;
	}
	return false;
}

UNIT(wide_books_at_rest_are_exact_and_cost_a_look)
{
	struct world *world = begin();
	size_t first = parts(take(world)), summed = world->latest->devices_summed;

	assert(world->latest->devices_looks == 0 && summed > 0);
	/* Each is read once, whatever the bound. */
	take(world);
	assert(world->latest->devices_looks == WIDE * (BOOK_DEVICES + 1));
	for (int i = 0; i < 3; i++) {
		const struct snapshot *snapshot = take(world);

		assert(snapshot->devices_looks == WIDE * 2 && snapshot->devices_old == 0);
		assert(snapshot->exact && parts(snapshot) == first);
		assert(snapshot->devices_summed == summed);
		assert(used(snapshot, MALLORY) == WIDE * 100 && used(snapshot, ALICE) == 100);
	}
	end(world);
}

UNIT(what_changes_is_read_in_turn_and_the_others_are_exact)
{
	struct world *world = begin();
	uint64_t address = 0x2000;

	take(world);
	take(world);
	for (uint32_t round = 0; round < 2 * WIDE; round++) {
		const struct snapshot *snapshot;
		const struct snapshot_process *alice;

		for (uint32_t i = 0; i < WIDE; i++, address += 0x1000)
			alloc(world, i, BOOK_DEVICES - 1, address);
		alloc(world, WIDE, 0, address += 0x1000);
		snapshot = take(world);
		assert(snapshot->devices_looks >= WIDE_BOOKS_LOOKS_MAX &&
		       snapshot->devices_looks < WIDE_BOOKS_LOOKS_MAX + BOOK_DEVICES + 3);
		assert(snapshot->devices_old > 0 && !snapshot->exact);
		assert(has_note(snapshot, "had no turn"));
		assert(used(snapshot, ALICE) == (round + 2) * 100);
		alice = &snapshot->processes[WIDE];
		assert(alice->user_id == ALICE && alice->exact);
		/* Nobody waits for more than all others. */
		assert(used(snapshot, MALLORY) + WIDE * WIDE * 100 >= WIDE * (round + 2) * 100);
	}
	/* Then they rest. */
	for (uint32_t i = 0; i < WIDE; i++)
		take(world);
	assert(world->latest->devices_old == 0 && world->latest->exact);
	assert(!has_note(world->latest, "had no turn"));
	assert(used(world->latest, MALLORY) == WIDE * (2 * WIDE + 1) * 100);
	end(world);
}

UNIT(one_users_changes_take_no_turn_of_another)
{
	struct world *world = begin();
	uint64_t address = 0x2000;

	for (uint32_t i = WIDE - 2; i < WIDE; i++)
		world->list->list[i]->book->owner.real_uid = BOB;
	take(world);
	take(world);
	for (uint32_t round = 0; round < WIDE; round++) {
		for (uint32_t i = 0; i < WIDE - 1; i++, address += 0x1000)
			alloc(world, i, BOOK_DEVICES - 1, address);
		take(world);
		assert(used(world->latest, BOB) == (round + 1) * 100 + 200);
		for (uint32_t i = WIDE - 2; i < WIDE; i++)
			assert(world->latest->processes[i].user_id == BOB &&
			       world->latest->processes[i].exact);
		assert(world->latest->devices_old > 0);
	}
	end(world);
}

UNIT(a_user_with_few_devices_again_has_no_sums)
{
	struct world *world = begin();
	const struct snapshot *snapshot;

	take(world);
	take(world);
	assert(world->list->list[0]->book->rest);
	for (uint32_t i = 1; i < WIDE; i++)
		world->list->list[i]->has_ended = true;
	take(world);
	/* Of the dead all is read, and they have no sum. */
	assert(!world->list->list[1]->book->rest);
	for (uint32_t i = 1; i < WIDE; i++)
		tracked_unref(world->list->list[i]);
	world->list->list[1] = world->list->list[WIDE];
	world->list->count = 2;
	take(world);
	snapshot = take(world);
	assert(!world->list->list[0]->book->rest && snapshot->devices_summed == 0);
	assert(snapshot->devices_looks == 0 && snapshot->exact);
	assert(used(snapshot, MALLORY) == 100);
	end(world);
}

UNIT(without_totals_no_book_is_wide)
{
	struct world *world = begin();

	take(world);
	take(world);
	world->latest = snapshot_free(world->latest);
	take(world);
	assert(world->latest->devices_looks == 0 && !world->list->list[0]->book->rest);
	assert(used(world->latest, MALLORY) == WIDE * 100);
	end(world);
}
