/* SPDX-License-Identifier: Apache-2.0 */

/* The reading threads, with feeds that are fast, slow, or never answer. */

#include "tui/poller.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "model/sites/group.h"
#include "model/snapshot.h"
#include "tui/incident-rows.h"

struct fake {
	bool hangs;     /* in recall(), until the process ends */
	int error;      /* of take() */
	int recalling;  /* result of recall() */
	bool helps;     /* the daemon does */
	int charts;     /* atomic: times that chart() was called */
	int freed;      /* atomic */
	int takes;      /* atomic */
	uint64_t at_ns; /* atomic: where it was moved to last */
};

#define TEST_NO_MOMENT 13u /* it cannot be read */

static int fake_take(void *context, const struct snapshot_request *request, bool names,
		     struct snapshot **ret_snapshot)
{
	struct fake *fake = context;
	struct snapshot *snapshot = snapshot_new(1);
	struct snapshot_process process = {.id.pid = 7, .comm = "x", .user = "y", .alive = true};
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

static int fake_recall(void *context, struct incident_rows *incident_rows)
{
	struct fake *fake = context;
	const struct incident_rows_row row = {.kind = "leak", .pid = 9, .count = 1};

	while (fake->hangs)
		pause();
	if (fake->recalling == 0)
		assert(incident_rows_add(incident_rows, &row));
	return fake->recalling;
}

static enum poller_daemon fake_daemon(void *context, char *ret_reason, size_t size)
{
	const struct fake *fake = context;

	snprintf(ret_reason, size, "because");
	return fake->helps ? POLLER_DAEMON_HELPS : POLLER_DAEMON_FAILS;
}

static int fake_chart(void *context, const struct snapshot *snapshot, uint64_t until_ns,
		      struct series_set *set)
{
	const struct series_key key = {1, 2};
	const struct series_sample sample = {.time_ns = until_ns - 1};
	struct fake *fake = context;

	assert(snapshot && series_add(set, &key, &sample) == 0);
	__atomic_add_fetch(&fake->charts, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static int fake_move(void *context, uint64_t at_ns)
{
	struct fake *fake = context;

	__atomic_store_n(&fake->at_ns, at_ns, __ATOMIC_SEQ_CST);
	return at_ns == TEST_NO_MOMENT ? -EBADMSG : 0;
}

static void fake_free(void *context)
{
	__atomic_add_fetch(&((struct fake *)context)->freed, 1, __ATOMIC_SEQ_CST);
}

static struct poller *start(struct fake *totals, struct fake *details)
{
	static const struct filter all;
	struct poller_feed feeds[2] = {
		{totals, fake_take, fake_recall, fake_daemon, fake_free, fake_chart},
		{details, fake_take, fake_recall, fake_daemon, fake_free, fake_chart},
	};
	struct poller *poller = NULL;

	assert(poller_new(&poller, 1, &all, feeds) == 0);
	return poller;
}

static void wait_for_news(struct poller *poller)
{
	struct pollfd wait = {.fd = poller_fd(poller), .events = POLLIN};

	assert(poll(&wait, 1, 30000) == 1);
}

static struct poller_totals *next_totals(struct poller *poller)
{
	struct poller_totals *totals = NULL;

	while (!totals) {
		wait_for_news(poller);
		totals = poller_take_totals(poller);
	}
	return totals;
}

static struct poller_details *next_details(struct poller *poller)
{
	struct poller_details *details = NULL;

	while (!details) {
		wait_for_news(poller);
		poller_totals_free(poller_take_totals(poller));
		details = poller_take_details(poller);
	}
	return details;
}

UNIT(totals_come_again_and_again)
{
	struct fake totals = {0}, details = {0};
	struct poller *poller = start(&totals, &details);
	uint64_t last = 0;

	for (int i = 0; i < 5; i++) {
		struct poller_totals *taken = next_totals(poller);

		assert(taken->error == 0 && taken->snapshot->process_count == 1);
		assert(taken->daemon == POLLER_DAEMON_FAILS && taken->reason[0] == 'b');
		assert(taken->time_ns > last);
		last = taken->time_ns;
		poller_totals_free(taken);
	}
	poller_free(poller);
	assert(totals.freed == 1 && details.freed == 1 && details.takes == 0);
}

/* It is asked for once, and not lost if the first reading is not fetched in time. */
UNIT(what_was_before_is_handed_over_once)
{
	struct fake totals = {.helps = true}, details = {.helps = true};
	struct poller *poller = start(&totals, &details);
	struct poller_totals *taken;

	while (__atomic_load_n(&totals.takes, __ATOMIC_SEQ_CST) < 3)
		wait_for_news(poller);
	taken = next_totals(poller);
	assert(taken->before.count == 1);
	poller_totals_free(taken);
	taken = next_totals(poller);
	assert(taken->before.count == 0);
	poller_totals_free(taken);
	poller_free(poller);
	assert(totals.charts == 1 && details.charts == 0);
}

UNIT(without_a_daemon_nothing_was_before)
{
	struct fake totals = {0}, details = {0};
	struct poller *poller = start(&totals, &details);
	struct poller_totals *taken = next_totals(poller);

	assert(taken->before.count == 0);
	poller_totals_free(taken);
	poller_free(poller);
	assert(totals.charts == 0);
}

UNIT(a_failure_is_told)
{
	struct fake totals = {.error = -EIO}, details = {.error = -ENOMEM};
	struct poller *poller = start(&totals, &details);
	struct poller_totals *taken = next_totals(poller);
	struct poller_details *read;

	assert(taken->error == -EIO && !taken->snapshot);
	poller_totals_free(taken);
	poller_wish(poller, &(struct poller_wish){.kind = POLLER_SITES});
	read = next_details(poller);
	assert(read->error == -ENOMEM && !read->snapshot && !read->sites.groups);
	poller_details_free(read);
	poller_free(poller);
}

UNIT(details_are_what_was_wished_for_last)
{
	struct fake totals = {0}, details = {.recalling = 1};
	struct poller *poller = start(&totals, &details);
	struct poller_wish sites = {.kind = POLLER_SITES};
	struct poller_wish buffers = {.kind = POLLER_BUFFERS, .pid = 7, .limit = 10};
	struct poller_details *read;

	poller_wish(poller, &sites);
	read = next_details(poller);
	assert(poller_same_wish(&read->wish, &sites));
	assert(read->sites.count == 1 && read->sites.groups[0].bytes == 128);
	poller_details_free(read);
	for (int i = 0; i < 50; i++) {
		poller_wish(poller, &sites);
		poller_wish(poller, &buffers);
	}
	do
		read = next_details(poller);
	while (!poller_same_wish(&read->wish, &buffers) && !poller_details_free(read));
	assert(read->snapshot->buffer_count == 2 && !read->sites.groups);
	poller_details_free(read);
	poller_free(poller);
	assert(totals.freed == 1 && details.freed == 1);
}

UNIT(without_a_daemon_the_living_tell_the_past)
{
	struct fake totals = {0}, details = {.recalling = 1};
	struct poller *poller = start(&totals, &details);
	struct poller_details *read;

	poller_wish(poller, &(struct poller_wish){.kind = POLLER_PAST});
	read = next_details(poller);
	assert(!read->from_daemon && read->snapshot && read->incident_rows->count == 0);
	poller_details_free(read);
	poller_free(poller);

	details = (struct fake){0};
	poller = start(&totals, &details);
	poller_wish(poller, &(struct poller_wish){.kind = POLLER_PAST});
	read = next_details(poller);
	assert(read->from_daemon && !read->snapshot && read->incident_rows->count == 1);
	poller_details_free(read);
	poller_free(poller);
}

/* The totals continue while the details hang, and quitting does not wait either. */
UNIT(a_hanging_daemon_does_not_block_the_totals)
{
	static struct fake totals, details; /* outlive the test: a thread is left */
	struct poller *poller;

	unit_expect_fds(1); /* its eventfd stays open */
	details.hangs = true;
	poller = start(&totals, &details);
	poller_wish(poller, &(struct poller_wish){.kind = POLLER_PAST});
	for (int i = 0; i < 3; i++)
		poller_totals_free(next_totals(poller));
	poller_free(poller);
	assert(__atomic_load_n(&totals.freed, __ATOMIC_SEQ_CST) == 1);
	assert(__atomic_load_n(&details.freed, __ATOMIC_SEQ_CST) == 0);
}

/* The first reading may be before the wish. */
static struct poller_totals *totals_at(struct poller *poller, struct fake *fake, uint64_t at_ns)
{
	struct poller_totals *totals = next_totals(poller);

	while (__atomic_load_n(&fake->at_ns, __ATOMIC_SEQ_CST) != at_ns) {
		poller_totals_free(totals);
		totals = next_totals(poller);
	}
	return totals;
}

UNIT(a_recording_is_read_when_the_moment_changes)
{
	static const struct filter all;
	struct fake totals = {0}, details = {0};
	struct poller_feed feeds[2] = {
		{&totals, fake_take, fake_recall, fake_daemon, fake_free, fake_chart, fake_move},
		{&details, fake_take, fake_recall, fake_daemon, fake_free, fake_chart, fake_move},
	};
	struct poller_wish wish = {.kind = POLLER_SITES, .at_ns = 7};
	struct poller *poller = NULL;
	struct poller_details *read;
	struct poller_totals *seen;

	assert(poller_new(&poller, 1, &all, feeds) == 0);
	poller_wish(poller, &wish);
	read = next_details(poller);
	assert(read->wish.at_ns == 7 && __atomic_load_n(&details.at_ns, __ATOMIC_SEQ_CST) == 7);
	poller_details_free(read);
	wish.at_ns = 9;
	poller_wish(poller, &wish);
	seen = totals_at(poller, &totals, 9);
	assert(seen->snapshot && seen->before.count == 1);
	poller_totals_free(seen);
	wish.at_ns = TEST_NO_MOMENT;
	poller_wish(poller, &wish);
	read = next_details(poller);
	while (read->wish.at_ns != TEST_NO_MOMENT) {
		poller_details_free(read);
		read = next_details(poller);
	}
	assert(read->error == -EBADMSG && !read->snapshot);
	poller_details_free(read);
	poller_free(poller);
	assert(totals.freed == 1 && details.freed == 1);
}
