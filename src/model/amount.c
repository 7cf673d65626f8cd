/* SPDX-License-Identifier: Apache-2.0 */

/* Adding up types that share a memory. */

#include "model/amount.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/text.h"
#include "model/merge.h"
#include "model/types.h"

static bool amount_counts(uint32_t type, uint32_t folded)
{
	return folded == AMOUNT_ALL || types_folded(type) == folded;
}

struct snapshot_memory amount_of_device(const struct snapshot_device *device, uint32_t folded)
{
	struct snapshot_memory amount = {0};

	if (folded != AMOUNT_ALL)
		amount.capacity = device->memory[folded].capacity;
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (amount_counts(type, folded))
			snapshot_add_memory(&amount, &device->memory[type]);
	}
	return amount;
}

struct snapshot_memory amount_of_part(const struct snapshot_part *part, uint32_t folded)
{
	struct snapshot_memory amount = {0};

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (amount_counts(type, folded))
			snapshot_add_memory(&amount, &part->memory[type]);
	}
	return amount;
}

struct snapshot_memory amount_of_process(const struct snapshot_process *process, uint32_t row,
					 uint32_t folded)
{
	struct snapshot_memory amount = {0};

	for (size_t i = 0; i < process->part_count; i++) {
		struct snapshot_memory part = amount_of_part(&process->parts[i], folded);

		if (row != AMOUNT_ANYWHERE && process->parts[i].row != row)
			continue;
		snapshot_add_memory(&amount, &part);
	}
	return amount;
}

/* Puts a process in its place among the @count largest so far. Returns how many there are now. */
static size_t amount_insert(const struct snapshot_process *process, uint64_t used, size_t count,
			    size_t most, const struct snapshot_process **processes)
{
	size_t at = count < most ? count : most - 1;

	for (; at > 0; at--) {
		const struct snapshot_process *before = processes[at - 1];

		if (amount_of_process(before, AMOUNT_ANYWHERE, AMOUNT_ALL).used >= used)
			break;
		processes[at] = before;
	}
	processes[at] = process;
	return count < most ? count + 1 : most;
}

static size_t amount_choose(const struct snapshot *snapshot, const struct amount_choice *choice,
			    bool with_buffers, size_t most,
			    const struct snapshot_process **ret_processes)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct snapshot_memory amount =
			amount_of_process(process, AMOUNT_ANYWHERE, AMOUNT_ALL);

		if (!process->alive || process->untracked || (with_buffers && !amount.buffers) ||
		    (choice && !choice->wants(choice->context, process)))
			continue;
		if (count == most &&
		    amount_of_process(ret_processes[most - 1], AMOUNT_ANYWHERE, AMOUNT_ALL).used >=
			    amount.used)
			continue;
		count = amount_insert(process, amount.used, count, most, ret_processes);
	}
	return count;
}

size_t amount_largest(const struct snapshot *snapshot, bool with_buffers, size_t most,
		      const struct snapshot_process **ret_processes)
{
	return amount_choose(snapshot, NULL, with_buffers, most, ret_processes);
}

size_t amount_largest_of(const struct snapshot *snapshot, const struct amount_choice *choice,
			 size_t most, const struct snapshot_process **ret_processes)
{
	return amount_choose(snapshot, choice, true, most, ret_processes);
}

size_t amount_of_driver(const struct snapshot_driver_memory *memory,
			struct amount_driver_row ret_rows[AMOUNT_DRIVER_ROWS])
{
	size_t n = 0;

	if (!memory)
		return 0;
	if (memory->pinned)
		ret_rows[n++] = (struct amount_driver_row){"driver:pinned", memory->pinned, 0};
	if (memory->dma)
		ret_rows[n++] = (struct amount_driver_row){"driver:dma", memory->dma, 0};
	if (memory->tlb || memory->tlb_windows)
		ret_rows[n++] =
			(struct amount_driver_row){"driver:tlb", memory->tlb, memory->tlb_windows};
	return n;
}

uint64_t amount_taken(const struct snapshot_memory *amount)
{
	uint64_t taken = merge_add(amount->occupied.bytes, amount->occupied.rest);

	return snapshot_is_occupied(&amount->occupied, amount->buffers, amount->used)
		       ? amount->occupied.bytes
		       : bits_max(taken, amount->used);
}

double amount_share(const struct snapshot_memory *amount)
{
	return amount->capacity ? (double)amount_taken(amount) / (double)amount->capacity : 0;
}

const char *amount_text(const struct snapshot_memory *amount, char *ret_text)
{
	char number[TEXT_NUMBER_SIZE];

	/* ASCII signs, so that they look the same on every terminal and page. */
	snprintf(ret_text, TEXT_NUMBER_SIZE, "%s%.29s",
		 amount->bound == SNAPSHOT_AT_LEAST  ? ">"
		 : amount->bound == SNAPSHOT_AT_MOST ? "<"
						     : "",
		 text_size(amount->used, number));
	return ret_text;
}

const char *amount_buffers(const struct snapshot_memory *amount, char *ret_text)
{
	*ret_text = '\0';
	if (amount->buffers || !amount->used)
		snprintf(ret_text, TEXT_NUMBER_SIZE, " in %" PRIu64 " buffer%s", amount->buffers,
			 amount->buffers == 1 ? "" : "s");
	return ret_text;
}

const char *amount_takes(const struct snapshot_buffer *buffer, char *ret_text)
{
	char takes[TEXT_NUMBER_SIZE], bank[TEXT_NUMBER_SIZE];
	uint64_t occupied;

	*ret_text = '\0';
	if (buffer->flags & SNAPSHOT_FLAG_ALIAS)
		snprintf(ret_text, AMOUNT_TAKES_SIZE, "takes nothing: it lies in another buffer");
	else if (snapshot_buffer_occupied(buffer, &occupied))
		snprintf(ret_text, AMOUNT_TAKES_SIZE, "takes %s: %s in %s%" PRIu32 " bank%s",
			 text_size(occupied, takes), text_size(buffer->size_per_bank, bank),
			 buffer->banks == 1 ? "" : "each of ", buffer->banks,
			 buffer->banks == 1 ? "" : "s");
	return ret_text;
}
