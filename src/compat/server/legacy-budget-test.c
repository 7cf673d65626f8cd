/* SPDX-License-Identifier: Apache-2.0 */

/* One user's books leave room for those of others. */

#include "compat/server/legacy-budget.h"

#include "base/testing/unit.h"

/* Charges single bytes until there is no room. */
static uint64_t fill(struct legacy_budget *budget, struct legacy_share *share)
{
	uint64_t count = 0;

	while (legacy_budget_charge(budget, share, 1, false))
		count++;
	return count;
}

UNIT(one_user_gets_half_and_the_next_half_of_the_rest)
{
	struct legacy_budget budget = {.total = 1024};
	struct legacy_share *first = legacy_budget_get(&budget, 1);
	struct legacy_share *second = legacy_budget_get(&budget, 2);

	assert(fill(&budget, first) == 512);
	assert(fill(&budget, second) == 256);
	assert(budget.used == 768 && budget.refused == 2);
	legacy_budget_refund(&budget, first, 512);
	legacy_budget_refund(&budget, second, 256);
	legacy_budget_put(&budget, first);
	legacy_budget_put(&budget, second);
	assert(!budget.shares && budget.used == 0);
}

UNIT(books_of_one_user_share_what_the_user_may_have)
{
	struct legacy_budget budget = {.total = 1024};
	struct legacy_share *first = legacy_budget_get(&budget, 1);
	struct legacy_share *again = legacy_budget_get(&budget, 1);

	assert(first == again);
	(void)fill(&budget, first); /* all that there is */
	assert(!legacy_budget_charge(&budget, again, 1, false));
	legacy_budget_put(&budget, first);
	assert(budget.shares == again && again->books == 1);
	legacy_budget_put(&budget, again);
}

/* After a restart the order may be another one; nobody loses what there was room for before. */
UNIT(what_was_there_before_counts_only_against_the_total)
{
	struct legacy_budget budget = {.total = 1024};
	struct legacy_share *late = legacy_budget_get(&budget, 2);
	struct legacy_share *early = legacy_budget_get(&budget, 1);

	assert(legacy_budget_charge(&budget, late, 256, true));
	assert(legacy_budget_charge(&budget, early, 512, true));
	assert(!legacy_budget_charge(&budget, early, 1, false));
	assert(!legacy_budget_charge(&budget, early, 257, true));
	assert(legacy_budget_charge(&budget, early, 256, true));
	legacy_budget_put(&budget, late);
	legacy_budget_put(&budget, early);
}
