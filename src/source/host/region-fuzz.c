/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as a region: whatever is accepted must be in range. */

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "source/host/region.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct region *region = malloc(sizeof(*region));
	char name[64];
	uint64_t id;
	int r;

	assert(region);
	r = region_parse(data, size, region);
	assert(r >= 0 && r <= REGION_BROKEN);
	if (r == 0) {
		assert(region->version >= 1 && region->version <= 4 &&
		       region->device < BOOK_DEVICES);
		assert(region->process_count <= REGION_PROCESSES);
		for (uint32_t i = 0; i < region->process_count; i++) {
			assert(region->processes[i].pid >= 1);
			assert(region->processes[i].pid <= INT32_MAX);
			assert(memchr(region->processes[i].name, '\0', REGION_NAME + 1));
		}
	}
	/* The same bytes as a file name. */
	size = size < sizeof(name) ? size : sizeof(name) - 1;
	memcpy(name, data, size);
	name[size] = '\0';
	(void)region_is_name(name, &id); /* either result is fine */
	free(region);
	return 0;
}
