/* SPDX-License-Identifier: Apache-2.0 */

/* What the driver keeps for processes, which only root and the daemon can read. */

#include <errno.h>

#include "base/cleanup.h"
#include "model/snapshot.h"
#include "source/daemon-client/daemon-client-private.h"
#include "source/daemon-client/daemon-client.h"

static int daemon_client_driver_memory_packet(void *context, const void *payload, size_t length,
					      int fd)
{
	CLEANUP_CLOSE int owned = fd;
	struct native_driver_memory told;
	uint32_t count;
	int r = 0;

	(void)owned; /* none was asked for */
	if (native_driver_memory_count(length, &count) < 0)
		return DAEMON_CLIENT_GARBAGE;
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		if (native_driver_memory_get(payload, i, &told) < 0)
			return DAEMON_CLIENT_GARBAGE;
		r = snapshot_add_driver_memory(context, &(struct snapshot_driver_memory){
								.pid = told.pid,
								.number = told.number,
								.pinned = told.pinned,
								.dma = told.dma,
								.tlb = told.tlb,
								.tlb_windows = told.tlb_windows,
							});
	}
	return r == -ENOBUFS ? DAEMON_CLIENT_GARBAGE : r;
}

int daemon_client_driver_memory(struct daemon_client *remote, struct snapshot *snapshot)
{
	struct native_request request;
	int r;

	native_request_init(&request, NATIVE_DRIVER_MEMORY);
	r = daemon_client_talk(remote, &request, daemon_client_driver_memory_packet, snapshot);
	/* An older daemon: everything else was answered, so that is its outcome. */
	return r == DAEMON_CLIENT_REFUSED ? daemon_client_settle(remote, 0) : r;
}
