/* SPDX-License-Identifier: Apache-2.0 */

/* Shares in what is read of lists of mappings. */

#include "source/proc/maps-budget.h"

#include <assert.h>

#include "base/testing/unit.h"

UNIT(a_list_has_a_limit_and_so_has_a_user)
{
	struct maps_budget budget = {0};
	size_t read = 0, left;

	while ((left = maps_budget_left(&budget, 5))) {
		assert(left <= MAPS_BUDGET_ONE);
		maps_budget_spend(&budget, 5, left);
		read += left;
	}
	assert(read == MAPS_BUDGET_SHARE);
	assert(maps_budget_left(&budget, 6) == MAPS_BUDGET_ONE);
}

UNIT(processes_of_others_do_not_use_up_the_share_of_a_files_owner)
{
	struct maps_budget budget = {0};

	maps_budget_spend(&budget, maps_budget_key(7, 5), MAPS_BUDGET_SHARE);
	maps_budget_spend(&budget, maps_budget_key(5, 7), MAPS_BUDGET_SHARE);
	assert(maps_budget_left(&budget, maps_budget_key(7, 5)) == 0);
	assert(maps_budget_left(&budget, maps_budget_key(5, 5)) == MAPS_BUDGET_ONE);
}

UNIT(all_together_have_a_limit)
{
	struct maps_budget budget = {0};

	for (uint64_t key = 0; key < MAPS_BUDGET_KEYS; key++)
		assert(maps_budget_left(&budget, key) == MAPS_BUDGET_ONE);
	assert(maps_budget_left(&budget, MAPS_BUDGET_KEYS) == 0);
	maps_budget_spend(&budget, MAPS_BUDGET_KEYS, MAPS_BUDGET_ALL - 1);
	assert(maps_budget_left(&budget, 3) == 1);
}
