/* SPDX-License-Identifier: Apache-2.0 */

/* Unwind tables of any bytes: nothing outside of them is read, and every search ends. */

#include <stdlib.h>
#include <string.h>

#include "lib/stack/eh-frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct eh_parts parts = {.count = 1};
	struct rule rule;
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	parts.list[0].low = (uintptr_t)copy;
	parts.list[0].high = (uintptr_t)copy + size;
	for (size_t pc = 0; pc <= size; pc += 8)
		eh_parts_rule(&parts, (uintptr_t)copy, (uintptr_t)copy + pc, &rule);
	free(copy);
	return 0;
}
