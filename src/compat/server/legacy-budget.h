/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memory of all books that the daemon keeps for old clients. Each user has a share: as much as
 * is then left for all others (base/quota.h). In the loop's thread only.
 */

#include <stdbool.h>
#include <stdint.h>

/* A user who has books; counted. */
struct legacy_share {
	struct legacy_share *next;
	uint32_t uid;
	uint32_t books;
	uint64_t used;
};

struct legacy_budget {
	uint64_t total, used;
	uint64_t refused; /* times that there was no room */
	struct legacy_share *shares;
};

/* That user's share, with one more book. NULL: no memory. */
struct legacy_share *legacy_budget_get(struct legacy_budget *budget, uint32_t uid);
void legacy_budget_put(struct legacy_budget *budget, struct legacy_share *share);

/*
 * False: there is no room. @is_adopted: it was there before the daemon was restarted, when others
 * may have had less, so that only the total counts.
 */
bool legacy_budget_charge(struct legacy_budget *budget, struct legacy_share *share, uint64_t bytes,
			  bool is_adopted);
void legacy_budget_refund(struct legacy_budget *budget, struct legacy_share *share, uint64_t bytes);
