/* SPDX-License-Identifier: Apache-2.0 */

/* Who has how much of the old clients' memory. There are few users: a list is enough. */

#include "compat/server/legacy-budget.h"

#include <stdlib.h>

#include "base/quota.h"

struct legacy_share *legacy_budget_get(struct legacy_budget *budget, uint32_t uid)
{
	struct legacy_share *share = budget->shares;

	while (share && share->uid != uid)
		share = share->next;
	if (!share) {
		share = calloc(1, sizeof(*share));
		if (!share)
			return NULL;
		share->uid = uid;
		share->next = budget->shares;
		budget->shares = share;
	}
	share->books++;
	return share;
}

void legacy_budget_put(struct legacy_budget *budget, struct legacy_share *share)
{
	struct legacy_share **place = &budget->shares;

	if (--share->books > 0)
		return;
	while (*place != share)
		place = &(*place)->next;
	*place = share->next;
	free(share);
}

bool legacy_budget_charge(struct legacy_budget *budget, struct legacy_share *share, uint64_t bytes,
			  bool is_adopted)
{
	uint64_t room = is_adopted ? budget->total - budget->used
				   : quota_rest(budget->total, budget->used, share->used);

	if (bytes > room) {
		budget->refused++;
		return false;
	}
	budget->used += bytes;
	share->used += bytes;
	return true;
}

void legacy_budget_refund(struct legacy_budget *budget, struct legacy_share *share, uint64_t bytes)
{
	budget->used -= bytes;
	share->used -= bytes;
}
