/* SPDX-License-Identifier: Apache-2.0 */

/* Totals and rows that differ: when that is believed. */

#include "source/host/region-excess.h"

#include <errno.h>

#include "base/testing/unit.h"
#include "model/types.h"
#include "source/host/region.h"

/* What further looks show, one after another; the last one stays. */
struct script {
	const struct region *looks;
	size_t count, next;
};

static int again(void *context, struct region *ret_region)
{
	struct script *script = context;

	if (script->count == 0)
		return -ENOENT;
	*ret_region = script->looks[script->next];
	if (script->next + 1 < script->count)
		script->next++;
	return 0;
}

static struct region look(uint64_t total, uint64_t row, uint64_t stamp)
{
	return (struct region){
		.stamp = stamp,
		.used = {[TYPES_DRAM] = total},
		.process_count = 1,
		.processes = {{.pid = 7, .used = {[TYPES_DRAM] = row}}},
	};
}

static uint64_t excess(const struct region *looks, size_t count, bool is_quiet)
{
	struct script script = {.looks = looks + 1, .count = count - 1};

	return region_excess(&looks[0], is_quiet, again, &script);
}

UNIT(what_a_second_look_does_not_show_is_not_said)
{
	const struct region looks[] = {look(4096, 0, 1), look(4096, 4096, 1)};

	assert(excess(looks, 2, false) == 0);
	assert(excess(looks, 2, true) == 0);
}

UNIT(a_quiet_region_is_believed_at_the_second_look)
{
	const struct region looks[] = {look(5000, 4096, 1), look(5000, 4096, 1)};

	assert(excess(looks, 2, true) == 904);
	assert(excess(looks, 1, true) == 0); /* it is gone */
}

/* It stands between the two stores for as long as it does not run. */
UNIT(a_writer_that_was_interrupted_just_now_is_not_believed)
{
	const struct region looks[] = {look(4096, 0, 1), look(4096, 0, 1)};

	assert(excess(looks, 2, false) == 0);
}

UNIT(a_busy_region_is_believed_after_several_states_with_the_least)
{
	struct region looks[REGION_EXCESS_STATES];

	for (uint32_t i = 0; i < REGION_EXCESS_STATES; i++)
		looks[i] = look(5000 + 10 * i, 1000, i);
	assert(excess(looks, REGION_EXCESS_STATES, false) == 4000);
	assert(excess(looks, REGION_EXCESS_STATES - 1, false) == 0);
	looks[3] = look(5000, 5000, 3);
	assert(excess(looks, REGION_EXCESS_STATES, false) == 0);
}

UNIT(types_do_not_make_up_for_each_other)
{
	struct region looks[2] = {look(100, 0, 1), look(100, 0, 1)};

	looks[0].processes[0].used[TYPES_CB] = looks[1].processes[0].used[TYPES_CB] = 500;
	assert(excess(looks, 2, true) == 100);
}
