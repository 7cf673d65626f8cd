/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which of the driver's nodes a process really has open. The driver lists who opened a node; the list
 * keeps a pid after its process has ended as long as a child holds the node, and knows nothing of
 * children that inherited it. The descriptors and mappings of a process tell, where they may be read;
 * where they do not and nobody else has the node, the driver's word is kept. A descriptor whose name ends
 * in " (deleted)" is of a node that was removed: its card may be back, but not for this process.
 * Nodes are in /dev, or in TTMEM_DEV_ROOT (for tests).
 */

#include <stddef.h>

struct pid_cache;
struct snapshot;
struct snapshot_claim;

/* A reader that may see more than we do, as the daemon does. */
struct nodes_teller {
	void *context;
	/*
	 * Which processes have which nodes open: claims whose device is the number of the node, to be freed by the
	 * caller; texts are added to @snapshot. Returns 0; anything else means that it is not known.
	 */
	int (*openers)(void *context, struct snapshot *snapshot, struct snapshot_claim **ret_claims,
		       size_t *ret_count);
};

/*
 * Checks the driver's claims, and adds those of processes that report themselves but do not know which
 * chips they use. To be called when all other sources have been read. @teller: is queried where files of
 * processes cannot be read; NULL = there is none. Returns 0 or -ENOMEM.
 */
int nodes_check(struct pid_cache *pid_cache, const struct nodes_teller *teller,
		struct snapshot *snapshot);
