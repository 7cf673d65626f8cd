/* SPDX-License-Identifier: Apache-2.0 */

/* Shares in what is read of lists of mappings. */

#include "source/proc/maps-budget.h"

#include <assert.h>

#include "base/testing/unit.h"

UNIT(a_list_has_a_limit_and_so_has_a_user)
{
	struct quota budget = MAPS_BUDGET;
	size_t read = 0, left;

	while ((left = maps_budget_left(&budget, 5))) {
		assert(left <= MAPS_BUDGET_ONE);
		assert(quota_add(&budget, 5, left) == 0);
		read += left;
	}
	assert(read == MAPS_BUDGET_SHARE);
	assert(maps_budget_left(&budget, 6) == MAPS_BUDGET_ONE);
	quota_deinit(&budget);
}

UNIT(processes_of_others_do_not_use_up_the_share_of_a_files_owner)
{
	struct quota budget = MAPS_BUDGET;

	assert(quota_add(&budget, maps_budget_key(7, 5), MAPS_BUDGET_SHARE) == 0);
	assert(quota_add(&budget, maps_budget_key(5, 7), MAPS_BUDGET_SHARE) == 0);
	assert(maps_budget_left(&budget, maps_budget_key(7, 5)) == 0);
	assert(maps_budget_left(&budget, maps_budget_key(5, 5)) == MAPS_BUDGET_ONE);
	quota_deinit(&budget);
}

UNIT(all_together_have_a_limit)
{
	struct quota budget = MAPS_BUDGET;

	for (uint64_t key = 0; key < MAPS_BUDGET_KEYS; key++) {
		assert(maps_budget_left(&budget, key) == MAPS_BUDGET_ONE);
		assert(quota_add(&budget, key, 1) == 0);
	}
	assert(maps_budget_left(&budget, MAPS_BUDGET_KEYS) == 0);
	assert(quota_add(&budget, MAPS_BUDGET_KEYS, MAPS_BUDGET_ALL - MAPS_BUDGET_KEYS - 1) == 0);
	assert(maps_budget_left(&budget, 3) == 1);
	quota_deinit(&budget);
}
