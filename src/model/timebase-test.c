/* SPDX-License-Identifier: Apache-2.0 */

/* Time stamps become times of day, and no book can make one leave [start, now]. */

#include "model/timebase.h"

#include "base/testing/unit.h"
#include "book/format/layout.h"

static struct timebase make(uint64_t clock_start, uint64_t monotonic_start, uint64_t stamp_now,
			    uint64_t monotonic_now, uint64_t realtime_now)
{
	struct book_header header = {.clock_start = clock_start,
				     .monotonic_start = monotonic_start};
	struct timebase_now now = {stamp_now, monotonic_now, realtime_now};
	struct timebase timebase;

	timebase_init(&timebase, &header, &now);
	return timebase;
}

UNIT(nanoseconds_pass_through)
{
	struct timebase timebase = make(1000, 1000, 5000, 5000, 1000000);

	assert(timebase_ns(&timebase, 1000) == 996000);
	assert(timebase_ns(&timebase, 3000) == 998000);
	assert(timebase_ns(&timebase, 5000) == 1000000);
}

UNIT(cycles_are_interpolated)
{
	/* Three cycles per nanosecond, from 1 s to 11 s. */
	struct timebase timebase =
		make(UINT64_C(500), UINT64_C(1000000000), UINT64_C(500) + UINT64_C(30000000000),
		     UINT64_C(11000000000), UINT64_C(1700000000000000000));

	assert(timebase_ns(&timebase, 500 + UINT64_C(15000000000)) ==
	       UINT64_C(1700000000000000000) - UINT64_C(5000000000));
}

UNIT(large_numbers_do_not_overflow)
{
	struct timebase timebase = make(1, 1, UINT64_MAX, UINT64_MAX / 2, UINT64_MAX - 1);

	assert(timebase_ns(&timebase, UINT64_MAX - 1) <= timebase.now);
	assert(timebase_ns(&timebase, UINT64_MAX / 2) >= timebase.start);
}

UNIT(time_zero_stays_never)
{
	struct timebase timebase = make(1000, 1000, 5000, 5000, 1000000);

	assert(timebase_ns(&timebase, 0) == 0);
}

UNIT(stamps_outside_are_clamped)
{
	struct timebase timebase = make(1000, 1000, 5000, 5000, 1000000);

	assert(timebase_ns(&timebase, 1) == timebase.start);
	assert(timebase_ns(&timebase, 6000) == timebase.now);
	assert(timebase_ns(&timebase, UINT64_MAX) == timebase.now);
}

UNIT(a_book_from_the_future_is_from_now)
{
	struct timebase timebase = make(9000, 9000, 5000, 5000, 1000000);

	assert(timebase.start == timebase.now && timebase.now == 1000000);
	assert(timebase_ns(&timebase, 1) == 1000000);
	assert(timebase_ns(&timebase, 9500) == 1000000);
}

UNIT(a_book_older_than_the_epoch_is_not)
{
	/* The system clock was set back to 1970. */
	struct timebase timebase = make(10, 10, 5000, 5000, 100);

	assert(timebase.start == 0 && timebase.now == 100);
	assert(timebase_ns(&timebase, 5000) == 100);
}

UNIT(a_clock_that_stands_still_is_survived)
{
	struct timebase timebase = make(1000, 1000, 1000, 5000, 1000000);

	assert(timebase_ns(&timebase, 1000) == timebase.start);
	assert(timebase_ns(&timebase, 1001) == timebase.now);
}
