/* SPDX-License-Identifier: Apache-2.0 */

/* A list: few users have processes that regions name. */

#include "source/proc/maps-budget.h"

#include "base/bits.h"

/* NULL: there are too many. */
static struct maps_budget_share *maps_budget_share(struct maps_budget *budget, uint64_t key)
{
	for (size_t i = 0; i < budget->count; i++) {
		if (budget->shares[i].key == key)
			return &budget->shares[i];
	}
	if (budget->count == MAPS_BUDGET_KEYS)
		return NULL;
	budget->shares[budget->count] = (struct maps_budget_share){.key = key};
	return &budget->shares[budget->count++];
}

size_t maps_budget_left(struct maps_budget *budget, uint64_t key)
{
	const struct maps_budget_share *share = maps_budget_share(budget, key);
	size_t left = share ? MAPS_BUDGET_SHARE - bits_min(share->used, MAPS_BUDGET_SHARE) : 0;

	left = bits_min(left, MAPS_BUDGET_ALL - bits_min(budget->used, MAPS_BUDGET_ALL));
	return bits_min(left, MAPS_BUDGET_ONE);
}

void maps_budget_spend(struct maps_budget *budget, uint64_t key, size_t bytes)
{
	struct maps_budget_share *share = maps_budget_share(budget, key);

	if (share)
		share->used += bytes;
	budget->used += bytes;
}
