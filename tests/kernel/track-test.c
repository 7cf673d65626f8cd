/* SPDX-License-Identifier: Apache-2.0 */

/* The calls of the old design: over the module where it is, else over the library's book. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <ttmem/compat/tt_track.h>

#include "base/testing/unit.h"

UNIT(plain_alloc_free_and_totals_work)
{
	int has_kernel = access(TTMEM_NODE, R_OK | W_OK) == 0;
	struct tt_allocation_stats stats;

	if (!has_kernel)
		setenv("TTMEM", "1", 1);   /* NOLINT(concurrency-mt-unsafe): no threads */
	setenv("TTMEM_SOCKET", "none", 1); /* NOLINT(concurrency-mt-unsafe) */
	unit_expect_fds(1);
	assert(tt_track_allocation(4, 0x1000, 4096, 0) == 0);
	assert(tt_track_allocation(4, 0x2000, 100, 3) == 0);
	assert(tt_track_allocation(4, 0x2000, 100, 3) == 0); /* one more reference */
	assert(tt_track_allocation(4, 0x3000, 7, 6) == 0);
	assert(tt_track_allocation(4, 0x1000, 1, TTMEM_UAPI_TYPES) == -EINVAL);
	assert(tt_track_allocation(4, 0x1000, 0, 0) == -EINVAL);
	assert(tt_track_allocation(1024, 0x1000, 1, 0) == -EINVAL);
	assert(tt_query_allocation_stats(4, &stats) == 0);
	assert(stats.dram_bytes == 4096 && stats.l1_small_bytes == 100 && stats.l1_bytes == 0);
	assert(stats.total_buffers == 3 && stats.l1_small_buffers == 1);
	assert(tt_track_deallocation(4, 0x2000) == 0);
	assert(tt_track_deallocation(4, 0x1000) == 0);
	assert(tt_query_allocation_stats(4, &stats) == 0);
	assert(stats.dram_buffers == 0 && stats.l1_small_buffers == 1 && stats.total_buffers == 2);
	assert(tt_track_deallocation(4, 0x9999) == (has_kernel ? -ENOENT : 0));
	assert(tt_query_allocation_stats(4, NULL) == -EINVAL);
	assert(tt_track_deallocation(1024, 0) == -EINVAL);
}
