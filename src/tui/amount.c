/* SPDX-License-Identifier: Apache-2.0 */

/* Adding up what lies in the same memory. */

#include "tui/amount.h"

#include <stdio.h>

#include "base/text.h"
#include "core/merge.h"
#include "core/snapshot.h"
#include "core/types.h"

struct amount amount_of_device(const struct snapshot_device *device, uint32_t folded)
{
	struct amount amount = {0};

	if (folded != AMOUNT_ALL)
		amount.capacity = device->memory[folded].capacity;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (folded != AMOUNT_ALL && types_folded(type) != folded)
			continue;
		amount.used = merge_add(amount.used, device->memory[type].used);
		amount.buffers = merge_add(amount.buffers, device->memory[type].buffers);
		amount.bound = merge_bound(amount.bound, device->memory[type].bound);
	}
	return amount;
}

struct amount amount_of_process(const struct snapshot_process *process, uint32_t row,
				uint32_t folded)
{
	struct amount amount = {0};

	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		if (row != AMOUNT_ANYWHERE && part->row != row)
			continue;
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &part->memory[type];

			if (folded != AMOUNT_ALL && types_folded(type) != folded)
				continue;
			amount.used = merge_add(amount.used, memory->used);
			amount.buffers = merge_add(amount.buffers, memory->buffers);
			amount.bound = merge_bound(amount.bound, memory->bound);
		}
	}
	return amount;
}

double amount_share(const struct amount *amount)
{
	return amount->capacity ? (double)amount->used / (double)amount->capacity : 0;
}

const char *amount_text(const struct amount *amount, char *ret_text)
{
	char number[TEXT_NUMBER_SIZE];

	/* ASCII signs: they must be the same wherever this is shown. */
	snprintf(ret_text, TEXT_NUMBER_SIZE, "%s%.29s",
		 amount->bound == SNAPSHOT_AT_LEAST  ? ">"
		 : amount->bound == SNAPSHOT_AT_MOST ? "<"
						     : "",
		 text_size(amount->used, number));
	return ret_text;
}
