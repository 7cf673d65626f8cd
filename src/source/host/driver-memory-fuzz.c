/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the driver's file of mappings. */

#include <errno.h>
#include <stdlib.h>

#include "base/testing/unit.h"
#include "source/host/driver-memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot_driver_memory *rows = NULL;
	size_t count = 0;
	int r = driver_memory_parse((const char *)data, size, &rows, &count);

	assert(r == 0 || r == -EBADMSG);
	assert(count <= size);
	for (size_t i = 0; i < count; i++) {
		assert(rows[i].pid >= 1 && rows[i].pid <= INT32_MAX);
		assert(i == 0 || rows[i - 1].pid < rows[i].pid);
		/* The window that a mapping shows is allocated. */
		assert(rows[i].tlb == 0 || rows[i].tlb_windows > 0);
	}
	free(rows);
	return 0;
}
