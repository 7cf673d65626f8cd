/* SPDX-License-Identifier: Apache-2.0 */

/* Times as numbers: the conversions, and the rounding of a time-out. */

#include "base/clock.h"

#include <limits.h>

#include "base/testing/unit.h"

UNIT(a_clock_goes_on)
{
	uint64_t before = clock_ns(CLOCK_MONOTONIC), after = clock_ns(CLOCK_MONOTONIC);

	assert(before > 0 && after >= before);
	assert(clock_ms(CLOCK_MONOTONIC) >= before / NS_PER_MS);
}

UNIT(a_clock_that_does_not_exist_is_0)
{
	assert(clock_ns((clockid_t)1000) == 0);
}

UNIT(a_timespec_has_less_than_a_second_of_nanoseconds)
{
	struct timespec time = clock_timespec(3 * NS_PER_S + 999999999);

	assert(time.tv_sec == 3 && time.tv_nsec == 999999999);
	time = clock_timespec(NS_PER_S);
	assert(time.tv_sec == 1 && time.tv_nsec == 0);
}

UNIT(what_is_left_is_rounded_up)
{
	assert(clock_left_ms(5, 5) == 0 && clock_left_ms(6, 5) == 0);
	assert(clock_left_ms(5, 6) == 1);
	assert(clock_left_ms(0, NS_PER_MS) == 1 && clock_left_ms(0, NS_PER_MS + 1) == 2);
}

UNIT(a_wait_for_ever_and_one_that_is_too_long)
{
	assert(clock_left_ms(5, CLOCK_NEVER) == -1);
	assert(clock_left_ms(5, CLOCK_NEVER - 1) == INT_MAX);
}

UNIT(an_awake_clock_stands_still_while_nobody_runs)
{
	struct clock_awake clock = {0};

	assert(clock_awake_pass(&clock, 1000, 10) == 0); /* it begins with the first step */
	assert(clock_awake_pass(&clock, 1007, 10) == 7);
	assert(clock_awake_pass(&clock, 5000, 10) == 17); /* stopped meanwhile */
	assert(clock_awake_pass(&clock, 5004, 10) == 21);
	assert(clock_awake_pass(&clock, 4000, 10) == 21); /* never back */
}
