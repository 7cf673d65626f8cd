/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two servers after one another, and between them only what somebody else held. The second test of each
 * kind changes what the first server left, to what a kill at the worst moment leaves.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "legacy/server/legacy-ledger.h"
#include "legacy/server/legacy-server.h"
#include "legacy/server/testing/legacy-server-testing.h"
#include "legacy/wire/legacy-encode.h"

struct htest {
	struct legacy_held held;
	struct legacy_testing_world world;
	struct legacy_ledger *ledger; /* between the servers */
	int client;
};

static int *htest_place(struct htest *test, enum legacy_held_kind kind)
{
	if (kind == LEGACY_HELD_LEDGER)
		return &test->held.ledger;
	return kind == LEGACY_HELD_LISTENER ? &test->held.listener : &test->held.boxes[0];
}

static void htest_hold(void *context, enum legacy_held_kind kind, int fd)
{
	struct htest *test = context;
	int *place = htest_place(test, kind);

	if (kind == LEGACY_HELD_BOX && test->held.box_count > 0)
		place = &test->held.boxes[test->held.box_count];
	assert(kind == LEGACY_HELD_BOX || *place < 0);
	*place = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	assert(*place >= 0);
	test->held.box_count += kind == LEGACY_HELD_BOX;
}

/* Only boxes are replaced here: always the older one. */
static void htest_release(void *context, enum legacy_held_kind kind, int fd)
{
	struct htest *test = context;

	(void)fd;
	if (kind != LEGACY_HELD_BOX || test->held.box_count < 2)
		return;
	(void)close(test->held.boxes[0]);
	test->held.boxes[0] = test->held.boxes[--test->held.box_count];
}

static void htest_open(struct htest *test)
{
	struct legacy_held held = test->held;
	struct legacy_config config = {
		.fd = -1,
		.held = &held,
		.custody = {.context = test, .hold = htest_hold, .release = htest_release},
	};

	test->held = LEGACY_HELD_NULL;
	legacy_testing_open(&test->world, &config);
}

/* A server with a client that has allocated one buffer. Then the server stops. */
static void htest_first(struct htest *test)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 1, 64);

	*test = (struct htest){.held = LEGACY_HELD_NULL};
	htest_open(test);
	test->client = legacy_testing_connect(test->world.path);
	legacy_testing_send(test->client, LEGACY_W72, &message);
	legacy_testing_send(test->client, LEGACY_W72, &message);
	legacy_testing_until_messages(&test->world, 2);
	legacy_testing_close(&test->world);
	assert(test->held.ledger >= 0 && test->held.listener >= 0 && test->held.box_count == 1);
	assert(legacy_ledger_open(&test->ledger, test->held.ledger) == 0);
}

static void htest_close(struct htest *test)
{
	(void)close(test->client);
	legacy_testing_close(&test->world);
	legacy_held_deinit(&test->held);
	legacy_ledger_close(test->ledger);
}

static struct legacy_slot *htest_slot(struct htest *test)
{
	for (uint32_t i = 0; i < LEGACY_CONNECTIONS_MAX; i++) {
		if (test->ledger->slots[i].inode)
			return &test->ledger->slots[i];
	}
	assert(!"no connection in the ledger");
	return NULL;
}

/* A journal with the allocation of @count buffers, numbered from 1. */
static void htest_journal(struct htest *test, uint32_t count)
{
	struct legacy_ledger *ledger = test->ledger;

	for (uint32_t i = 0; i < count; i++) {
		struct legacy_message message = legacy_testing_alloc(0, 0, i + 1, 64);
		size_t length;

		assert(legacy_encode_request(LEGACY_W72, &message, ledger->journal + (size_t)i * 72,
					     &length) == 0);
	}
	ledger->wanted = ledger->length = count * 72;
	ledger->position = 0;
	ledger->owner = 1 + (uint32_t)(htest_slot(test) - ledger->slots);
}

static uint64_t htest_buffers(struct htest *test)
{
	return legacy_testing_look(&test->world, 0, 0, 0).buffers;
}

static uint64_t htest_in_doubt(struct htest *test)
{
	return legacy_testing_counts(&test->world).in_doubt;
}

UNIT(half_a_message_is_left_for_the_next_server)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 2, 64);
	uint8_t bytes[LEGACY_SIZE_MAX];
	struct htest test;
	size_t length;

	assert(legacy_encode_request(LEGACY_W72, &message, bytes, &length) == 0);
	htest_first(&test);
	/* In the socket while nobody serves. */
	legacy_testing_send_bytes(test.client, bytes, 40);
	htest_open(&test);
	assert(legacy_testing_counts(&test.world).taken_over == 1);
	legacy_testing_send_bytes(test.client, bytes + 40, 32);
	legacy_testing_until_messages(&test.world, 1);
	assert(htest_buffers(&test) == 1 && htest_in_doubt(&test) == 0);
	htest_close(&test);
}

UNIT(a_journal_is_finished_by_the_next_server)
{
	struct htest test;

	htest_first(&test);
	htest_journal(&test, 5);
	test.ledger->position = 2 * 72;
	htest_open(&test);
	legacy_testing_until_messages(&test.world, 2); /* the first of a spill was counted before */
	assert(htest_buffers(&test) == 3 && htest_in_doubt(&test) == 0);
	htest_close(&test);
}

UNIT(a_message_that_was_being_applied_is_in_doubt)
{
	struct htest test;

	htest_first(&test);
	htest_journal(&test, 5);
	test.ledger->position = 2 * 72;
	test.ledger->applying = 1;
	htest_open(&test);
	legacy_testing_until_messages(&test.world, 1);
	assert(htest_buffers(&test) == 2 && htest_in_doubt(&test) == 1);
	htest_close(&test);
}

/* Killed before or after recv(): its first byte tells. */
UNIT(what_recv_has_taken_is_not_lost)
{
	struct htest test;

	htest_first(&test);
	htest_journal(&test, 3);
	test.ledger->length = 0;
	htest_open(&test);
	legacy_testing_until_messages(&test.world, 2);
	assert(htest_buffers(&test) == 3);
	htest_close(&test);

	htest_first(&test);
	htest_journal(&test, 3);
	test.ledger->length = 0;
	test.ledger->journal[0] = 0;
	htest_open(&test);
	assert(htest_slot(&test)->spill_end == 0 && htest_in_doubt(&test) == 0);
	htest_close(&test);
}

/* Killed after the rest was put aside, before the journal was closed. */
UNIT(a_spill_and_its_journal_count_once)
{
	struct htest test;

	htest_first(&test);
	htest_journal(&test, 4);
	test.ledger->position = 72;
	assert(legacy_ledger_spill(test.ledger, test.held.ledger, htest_slot(&test),
				   test.ledger->journal + 72, 3 * 72) == 0);
	htest_open(&test);
	legacy_testing_until_messages(&test.world, 2);
	assert(htest_buffers(&test) == 3 && htest_slot(&test)->spill_end == 0);
	htest_close(&test);
}

UNIT(an_answer_that_may_be_sent_is_not_sent_again)
{
	struct legacy_message message = legacy_testing_alloc(0, 0, 9, 64);
	struct htest test;
	char byte;

	htest_first(&test);
	htest_slot(&test)->answering = LEGACY_ANSWERING_NOW;
	htest_open(&test);
	assert(htest_in_doubt(&test) == 1);
	legacy_testing_send(test.client, LEGACY_W72, &message);
	legacy_testing_until_messages(&test.world, 1);
	assert(recv(test.client, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	htest_close(&test);

	/* Of half an answer the client must see the end. */
	htest_first(&test);
	htest_slot(&test)->answering = LEGACY_ANSWERING_PART;
	htest_open(&test);
	assert(htest_in_doubt(&test) == 1);
	assert(legacy_testing_counts(&test.world).connections == 0);
	assert(recv(test.client, &byte, 1, MSG_DONTWAIT) == 0);
	htest_close(&test);
}

/* Each time exactly one number is wrong. */
UNIT(a_ledger_that_makes_no_sense_is_not_used)
{
	for (int i = 0; i < 9; i++) {
		struct legacy_ledger *ledger;
		struct htest test;
		int waits;

		htest_first(&test);
		ledger = test.ledger;
		ledger->magic += i == 0;
		ledger->size -= i == 1;
		ledger->owner = i == 2 ? LEGACY_CONNECTIONS_MAX + 1 : 0;
		ledger->wanted = i == 3 ? LEGACY_READ_SIZE + 1 : 72;
		ledger->length = i == 4 ? 73 : 72;
		ledger->position = i == 5 ? 73 : 72;
		htest_slot(&test)->spill_end = i == 6 ? LEGACY_READ_SIZE + 1 : 0;
		ledger->version += i == 7;
		waits = legacy_testing_connect(test.world.path);
		htest_open(&test);
		assert(legacy_testing_counts(&test.world).taken_over == (i == 8));
		/* Those who wait at the listener are served by any version. */
		assert(legacy_testing_counts(&test.world).accepted >= 1);
		(void)close(waits);
		htest_close(&test);
	}
}

/* Its number is used by another connection, or by none. */
UNIT(a_box_that_does_not_fit_the_ledger_gives_nothing)
{
	struct htest test;

	htest_first(&test);
	htest_slot(&test)->inode++;
	htest_open(&test);
	assert(legacy_testing_counts(&test.world).connections == 0);
	htest_close(&test);
}

UNIT(a_listener_is_used_only_where_its_path_leads_to_it)
{
	struct htest test;
	int other;

	htest_first(&test);
	other = legacy_testing_connect(test.world.path);
	htest_open(&test);
	assert(legacy_testing_counts(&test.world).connections == 2);
	(void)close(other);
	htest_close(&test);

	htest_first(&test);
	assert(unlink(test.world.path) == 0);
	htest_open(&test);
	other = legacy_testing_connect(test.world.path);
	(void)close(other);
	htest_close(&test);
}
