/* SPDX-License-Identifier: Apache-2.0 */

/* Which process of a family gave its tracking up: of the ended ones the first, else of those that still run. */

#include "cli/run/run-limits.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/intern.h"
#include "cli/run/run-family.h"
#include "source/books/scan.h"

#define PEERS 4u /* the first has no book yet */

struct world {
	struct testing_book books[PEERS];
	struct scan_book scanned[PEERS];
	struct accept_peer peers[PEERS], *list[PEERS];
	struct family *family;
};

static struct world *begin(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert(world);
	world->family = calloc(1, sizeof(*world->family));
	assert(world->family);
	world->family->ended = snapshot_new(1);
	assert(world->family->ended);
	world->family->peers = world->list;
	world->family->peer_count = PEERS;
	for (uint32_t i = 0; i < PEERS; i++) {
		world->list[i] = &world->peers[i];
		if (i == 0)
			continue;
		testing_book_open(&world->books[i]);
		world->scanned[i] = (struct scan_book){.owner.id.pid = 200 + i};
		assert(reader_init(&world->scanned[i].reader, &world->books[i].file.file) == 0);
		world->peers[i].book = &world->scanned[i];
	}
	return world;
}

static void end(struct world *world)
{
	for (uint32_t i = 1; i < PEERS; i++) {
		reader_deinit(&world->scanned[i].reader);
		testing_book_deinit(&world->books[i]);
	}
	snapshot_free(world->family->ended);
	free(world->family);
	free(world);
}

static void give_up(struct world *world, uint32_t peer, const char *reason)
{
	struct writer *writer = world->books[peer].writer;

	writer->header->gave_up = intern_string(writer, reason, 100);
}

static void add_ended(struct world *world, uint32_t pid, const char *gave_up)
{
	const struct snapshot_process process = {
		.id = {pid, 1}, .comm = "x", .user = "y", .gave_up = gave_up};
	uint32_t index;

	assert(snapshot_add_process(world->family->ended, &process, &index) == 0);
}

static bool says(struct world *world, const char *reason, uint32_t pid)
{
	struct family *family = world->family;

	family->gave_up = NULL;
	family->gave_up_pid = 0;
	run_limits_find_gave_up(family);
	if (!reason)
		return !family->gave_up;
	return family->gave_up && strcmp(family->gave_up, reason) == 0 &&
	       family->gave_up_pid == pid;
}

UNIT(of_those_that_run_the_first_that_gave_up_is_told)
{
	struct world *world = begin();

	assert(says(world, NULL, 0));
	give_up(world, 3, "no room");
	assert(says(world, "no room", 203));
	give_up(world, 2, "no memory");
	assert(says(world, "no memory", 202));
	end(world);
}

UNIT(an_ended_one_goes_before_those_that_run)
{
	struct world *world = begin();

	give_up(world, 1, "no room");
	add_ended(world, 100, NULL);
	assert(says(world, "no room", 201));
	add_ended(world, 101, "no memory");
	add_ended(world, 102, "another reason");
	assert(says(world, "no memory", 101));
	end(world);
}

UNIT(a_reason_that_cannot_be_read_is_not_known)
{
	struct world *world = begin();

	world->books[1].writer->header->gave_up = 4711;
	assert(says(world, "the reason is not known", 201));
	end(world);
}
