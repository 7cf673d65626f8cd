/* SPDX-License-Identifier: Apache-2.0 */

/* The kernel uses pids again. */

#include "base/process-id.h"

#include "base/bits.h"
#include "base/testing/unit.h"

UNIT(a_pid_that_started_at_another_time_is_another_process)
{
	const struct process_id id = {5, 100};

	assert(process_id_equal(id, (struct process_id){5, 100}));
	assert(!process_id_equal(id, (struct process_id){5, 101}));
	assert(!process_id_equal(id, (struct process_id){6, 100}));
}

UNIT(processes_are_ordered_by_pid_and_then_by_start)
{
	static const struct process_id ids[] = {
		{5, UINT64_C(1) << 40}, {5, UINT64_C(2) << 40}, {6, 0}, {UINT32_MAX, 0}};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(ids); k++)
			assert(process_id_compare(ids[i], ids[k]) == (i > k) - (i < k));
	}
}
