/* SPDX-License-Identifier: Apache-2.0 */

/* The state of the daemon lists what is there to be told. */

#include "answers/status.h"

#include <string.h>

#include "base/testing/unit.h"

UNIT(limits_that_were_reached_are_listed_with_their_counters)
{
	struct status_row row = {0};

	status_set_lists(&row);
	assert(row.limit_count == 0);
	row.health.limits[QUOTA_NATIVE_CONNECTIONS] = 3;
	row.health.limits[QUOTA_MOMENTS] = 5; /* has no counter in /metrics */
	row.health.limits[QUOTA_PUSH] = UINT64_MAX;
	status_set_lists(&row);
	assert(row.limit_count == 2);
	assert(strcmp(row.limits[0].metric, "ttmem_native_connections_refused") == 0);
	assert(strcmp(row.limits[0].help, quota_metric(QUOTA_NATIVE_CONNECTIONS)->help) == 0);
	assert(row.limits[0].count == 3 && row.limits[1].count == UINT64_MAX);
}
