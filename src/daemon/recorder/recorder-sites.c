/* SPDX-License-Identifier: Apache-2.0 */

/* What ended processes have left, by call site, since the start. */

#include <stdlib.h>

#include "base/cleanup.h"
#include "daemon/recorder/recorder-private.h"

void recorder_count_leak(struct recorder *recorder, const struct snapshot *snapshot)
{
	CLEANUP_FREE struct leak_sites *left = calloc(1, sizeof(*left));

	if (!left)
		return; /* the report itself is more important, and needs more */
	/* Without the lock: there may be millions of buffers. */
	leak_sites_add(left, snapshot, 0);
	pthread_mutex_lock(&recorder->lock);
	leak_sites_merge(&recorder->leak_sites, left);
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_leak_sites(struct recorder *recorder, struct leak_sites *ret_sites)
{
	pthread_mutex_lock(&recorder->lock);
	*ret_sites = recorder->leak_sites;
	pthread_mutex_unlock(&recorder->lock);
}
