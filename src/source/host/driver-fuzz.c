/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a list of pids. */

#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"
#include "source/host/driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint32_t pids[8];
	size_t count;

	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	count = driver_parse_pids(text, pids, 8);
	assert(count + driver_count_outside(text) <= size);
	for (size_t i = 0; i < count && i < 8; i++)
		assert(pids[i] >= 1 && pids[i] <= INT32_MAX);
	free(text);
	return 0;
}
