/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Packets of a process list from an untrusted daemon. The input is a list of packets: two bytes of
 * length, then that many bytes of payload, repeated to the full size if the top bit of the length
 * is set, since rows are long and mostly zero. The result must make a consistent snapshot.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/daemon-client/daemon-client.h"

#define FUZZ_ROOM (sizeof(struct native_process) + 4 * sizeof(struct native_part))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot_request request = {.buffers = true};
	struct snapshot *snapshot = snapshot_new(1);
	struct scan scan = {.pass = 1};
	struct daemon_client *remote;

	assert(snapshot && daemon_client_new(&remote) == 0);
	while (size >= 2) {
		size_t length = bits_min(((size_t)data[0] << 8 | data[1]) & 0x7fff, FUZZ_ROOM);
		size_t given = bits_min(length, size - 2);
		uint8_t *payload = calloc(1, length ? length : 1);

		assert(payload);
		if (data[0] & 0x80)
			given = bits_min(given, sizeof(struct native_process));
		memcpy(payload, data + 2, given);
		if (daemon_client_take_consume(remote, &scan, payload, length, -1) < 0)
			assert(false); /* bad input must not be a failure of ours */
		free(payload);
		data += 2 + given;
		size -= 2 + given;
	}
	assert(daemon_client_collect(remote, &request, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0);
	for (size_t i = 0; i < snapshot->process_count; i++)
		assert(snapshot->processes[i].comm && snapshot->processes[i].user);
	daemon_client_free(remote);
	snapshot_free(snapshot);
	return 0;
}
