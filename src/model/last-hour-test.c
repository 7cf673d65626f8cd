/* SPDX-License-Identifier: Apache-2.0 */

/* The last hour: what is compared with what. */

#include "model/last-hour.h"

#include "base/clock.h"
#include "base/testing/unit.h"

#define MINUTE (60 * NS_PER_S)

static void put(struct last_hour *hour, uint64_t time_ns, uint64_t bytes, uint64_t incidents)
{
	const struct last_hour_entry entry = {
		.time_ns = time_ns, .bytes = bytes, .incidents = incidents};

	last_hour_put(hour, &entry);
}

static struct last_hour_change change(const struct last_hour *hour, uint64_t time_ns,
				      uint64_t bytes, uint64_t incidents)
{
	const struct last_hour_entry now = {
		.time_ns = time_ns, .bytes = bytes, .incidents = incidents};
	struct last_hour_change ret;

	last_hour_change(hour, &now, &ret);
	return ret;
}

UNIT(nothing_is_known_before_the_first_entry)
{
	struct last_hour hour = {0};
	struct last_hour_change now = change(&hour, 5 * MINUTE, 100, 2);

	assert(now.over_ns == 0 && now.bytes == 0 && now.incidents == 2);
}

UNIT(a_young_daemon_compares_with_its_start)
{
	struct last_hour hour = {0};
	struct last_hour_change now;

	put(&hour, MINUTE, 1000, 3); /* found at the start: new as well */
	put(&hour, MINUTE + NS_PER_S, 5000, 3);
	now = change(&hour, 3 * MINUTE, 700, 4);
	assert(now.over_ns == 2 * MINUTE && now.bytes == -300 && now.incidents == 4);
}

UNIT(an_old_daemon_compares_with_an_hour_ago)
{
	struct last_hour hour = {0};
	struct last_hour_change now;

	for (uint64_t i = 0; i < 300; i++)
		put(&hour, (i + 1) * MINUTE, 10 * i, i);
	now = change(&hour, 300 * MINUTE, 2990, 299);
	assert(now.over_ns == 60 * MINUTE && now.bytes == 600 && now.incidents == 60);
}

UNIT(a_pause_leaves_no_entry_older_than_an_hour)
{
	struct last_hour hour = {0};
	struct last_hour_change now;

	put(&hour, MINUTE, 100, 7);
	put(&hour, 500 * MINUTE, 900, 8);
	now = change(&hour, 501 * MINUTE, 901, 9);
	assert(now.over_ns == MINUTE && now.bytes == 1 && now.incidents == 1);
}

UNIT(extreme_totals_do_not_overflow)
{
	struct last_hour hour = {0};
	struct last_hour_change now;

	put(&hour, MINUTE, 0, 0);
	now = change(&hour, 2 * MINUTE, UINT64_MAX, 0);
	assert(now.bytes == INT64_MAX);
	hour = (struct last_hour){0};
	put(&hour, MINUTE, UINT64_MAX, 0);
	now = change(&hour, 2 * MINUTE, 0, 0);
	assert(now.bytes == -INT64_MAX);
}
