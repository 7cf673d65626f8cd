/* SPDX-License-Identifier: Apache-2.0 */

/* The driver's memory as packets, each as full as it can be. */

#include "daemon/native/native-driver-memory.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "daemon/native/native-answer.h"
#include "daemon/native/native-server.h"
#include "model/snapshot.h"
#include "wire/native.h"

static void native_driver_memory_fill(const struct snapshot_driver_memory *from,
				      struct native_driver_memory *ret_memory)
{
	*ret_memory = (struct native_driver_memory){
		.pid = from->pid,
		.number = from->number,
		.pinned = from->pinned,
		.dma = from->dma,
		.tlb = from->tlb,
		.tlb_windows = from->tlb_windows,
	};
}

int native_driver_memory_put(const struct native_hooks *hooks, uint64_t came_ns,
			     struct native_answer *answer)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP_FREE struct native_driver_memory *packet = NULL;
	int r = hooks->totals(hooks->context, came_ns, &snapshot);
	size_t done = 0;

	if (r < 0)
		return r;
	packet = calloc(NATIVE_DRIVER_MEMORY_MAX, sizeof(*packet));
	if (!packet)
		return -ENOMEM;
	while (r == 0 && done < snapshot->driver_memory_count) {
		size_t n = bits_min(snapshot->driver_memory_count - done, NATIVE_DRIVER_MEMORY_MAX);

		for (size_t i = 0; i < n; i++)
			native_driver_memory_fill(&snapshot->driver_memory[done + i], &packet[i]);
		r = native_answer_put(answer, packet, n * sizeof(*packet), NULL);
		done += n;
	}
	return r;
}
