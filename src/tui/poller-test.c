/* SPDX-License-Identifier: Apache-2.0 */

/* The reading threads, with feeds that are fast, slow, or never answer. */

#include "tui/poller.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/unit.h"
#include "model/group.h"
#include "model/snapshot.h"
#include "tui/incident-rows.h"

struct fake {
	bool hangs;    /* in recall(), until the process ends */
	int error;     /* of take() */
	int recalling; /* result of recall() */
	int freed;     /* atomic */
	int takes;     /* atomic */
};

static int fake_take(void *context, const struct snapshot_request *request, bool names,
		     struct snapshot **ret_snapshot)
{
	struct fake *fake = context;
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_process process = {.pid = 7, .comm = "x", .user = "y", .alive = true};
	uint32_t index;

	assert(snapshot && snapshot_add_process(snapshot, &process, &index) == 0);
	__atomic_add_fetch(&fake->takes, 1, __ATOMIC_SEQ_CST);
	if (request->buffers) {
		struct snapshot_buffer buffer = {.size = 64, .name = "weights"};

		assert(names);
		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
		assert(snapshot_add_buffer(snapshot, &buffer) == 0);
	}
	assert(snapshot_finish(snapshot) == 0);
	if (fake->error) {
		snapshot_free(snapshot);
		return fake->error;
	}
	*ret_snapshot = snapshot;
	return 0;
}

static int fake_recall(void *context, struct past *past)
{
	struct fake *fake = context;
	const struct past_row row = {.kind = "leak", .pid = 9, .count = 1};

	while (fake->hangs)
		pause();
	if (fake->recalling == 0)
		assert(past_add(past, &row));
	return fake->recalling;
}

static enum reader_daemon fake_daemon(void *context, char *ret_reason, size_t size)
{
	(void)context;
	snprintf(ret_reason, size, "because");
	return READER_DAEMON_FAILS;
}

static void fake_free(void *context)
{
	__atomic_add_fetch(&((struct fake *)context)->freed, 1, __ATOMIC_SEQ_CST);
}

static struct reader *start(struct fake *totals, struct fake *details)
{
	static const struct filter all;
	struct reader_feed feeds[2] = {
		{totals, fake_take, fake_recall, fake_daemon, fake_free},
		{details, fake_take, fake_recall, fake_daemon, fake_free},
	};
	struct reader *reader = NULL;

	assert(reader_new(&reader, 1, &all, feeds) == 0);
	return reader;
}

static void wait_for_news(struct reader *reader)
{
	struct pollfd wait = {.fd = reader_fd(reader), .events = POLLIN};

	assert(poll(&wait, 1, 30000) == 1);
}

static struct reader_totals *next_totals(struct reader *reader)
{
	struct reader_totals *totals = NULL;

	while (!totals) {
		wait_for_news(reader);
		totals = reader_take_totals(reader);
	}
	return totals;
}

static struct reader_details *next_details(struct reader *reader)
{
	struct reader_details *details = NULL;

	while (!details) {
		wait_for_news(reader);
		reader_totals_free(reader_take_totals(reader));
		details = reader_take_details(reader);
	}
	return details;
}

UNIT(totals_come_again_and_again)
{
	struct fake totals = {0}, details = {0};
	struct reader *reader = start(&totals, &details);
	uint64_t last = 0;

	for (int i = 0; i < 5; i++) {
		struct reader_totals *taken = next_totals(reader);

		assert(taken->error == 0 && taken->snapshot->process_count == 1);
		assert(taken->daemon == READER_DAEMON_FAILS && taken->reason[0] == 'b');
		assert(taken->time_ns > last);
		last = taken->time_ns;
		reader_totals_free(taken);
	}
	reader_free(reader);
	assert(totals.freed == 1 && details.freed == 1 && details.takes == 0);
}

UNIT(a_failure_is_told)
{
	struct fake totals = {.error = -EIO}, details = {.error = -ENOMEM};
	struct reader *reader = start(&totals, &details);
	struct reader_totals *taken = next_totals(reader);
	struct reader_details *read;

	assert(taken->error == -EIO && !taken->snapshot);
	reader_totals_free(taken);
	reader_wish(reader, &(struct reader_wish){.kind = READER_SITES});
	read = next_details(reader);
	assert(read->error == -ENOMEM && !read->snapshot && !read->groups);
	reader_details_free(read);
	reader_free(reader);
}

UNIT(details_are_what_was_wished_for_last)
{
	struct fake totals = {0}, details = {.recalling = 1};
	struct reader *reader = start(&totals, &details);
	struct reader_wish sites = {.kind = READER_SITES};
	struct reader_wish buffers = {.kind = READER_BUFFERS, .pid = 7, .limit = 10};
	struct reader_details *read;

	reader_wish(reader, &sites);
	read = next_details(reader);
	assert(reader_same_wish(&read->wish, &sites));
	assert(read->group_count == 1 && read->groups[0].bytes == 128);
	reader_details_free(read);
	for (int i = 0; i < 50; i++) {
		reader_wish(reader, &sites);
		reader_wish(reader, &buffers);
	}
	do
		read = next_details(reader);
	while (!reader_same_wish(&read->wish, &buffers) && !reader_details_free(read));
	assert(read->snapshot->buffer_count == 2 && !read->groups);
	reader_details_free(read);
	reader_free(reader);
	assert(totals.freed == 1 && details.freed == 1);
}

UNIT(without_a_daemon_the_living_tell_the_past)
{
	struct fake totals = {0}, details = {.recalling = 1};
	struct reader *reader = start(&totals, &details);
	struct reader_details *read;

	reader_wish(reader, &(struct reader_wish){.kind = READER_PAST});
	read = next_details(reader);
	assert(!read->from_daemon && read->snapshot && read->past->count == 0);
	reader_details_free(read);
	reader_free(reader);

	details = (struct fake){0};
	reader = start(&totals, &details);
	reader_wish(reader, &(struct reader_wish){.kind = READER_PAST});
	read = next_details(reader);
	assert(read->from_daemon && !read->snapshot && read->past->count == 1);
	reader_details_free(read);
	reader_free(reader);
}

/* The totals continue while the details hang, and quitting does not wait either. */
UNIT(a_hanging_daemon_does_not_block_the_totals)
{
	static struct fake totals, details; /* outlive the test: a thread is left */
	struct reader *reader;

	unit_expect_fds(1); /* its eventfd stays open */
	details.hangs = true;
	reader = start(&totals, &details);
	reader_wish(reader, &(struct reader_wish){.kind = READER_PAST});
	for (int i = 0; i < 3; i++)
		reader_totals_free(next_totals(reader));
	reader_free(reader);
	assert(__atomic_load_n(&totals.freed, __ATOMIC_SEQ_CST) == 1);
	assert(__atomic_load_n(&details.freed, __ATOMIC_SEQ_CST) == 0);
}
