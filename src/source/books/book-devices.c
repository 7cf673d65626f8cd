/* SPDX-License-Identifier: Apache-2.0 */

/* What a book declares about devices. */

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "source/books/book-private.h"
#include "source/books/scan.h"

static const char *book_field(struct snapshot *snapshot, const char *field, size_t size)
{
	size_t length = strnlen(field, size);

	return length ? snapshot_text(snapshot, field, length) : NULL;
}

/* Adds what the process declared, whether it used the device or not. */
static int book_add_facts(struct book_reading *reading, uint32_t device,
			  const struct book_device *entry)
{
	struct snapshot *snapshot = reading->snapshot;
	struct snapshot_part *part = snapshot_part(snapshot, reading->process, device);

	if (!part)
		return -ENOMEM;
	part->facts = (struct snapshot_facts){
		.declared = true,
		.remote = entry->remote != 0,
		.unique_id = entry->unique_id,
		.arch = book_field(snapshot, entry->arch, sizeof(entry->arch)),
		.card = book_field(snapshot, entry->card, sizeof(entry->card)),
		.closed_ns = timebase_ns(&reading->timebase, entry->closed_time),
	};
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_memory *memory = &entry->memory[type];

		part->facts.capacity[type] = memory->capacity;
		part->facts.windows[type] = (struct snapshot_window){
			.base = memory->bank_base,
			.size = memory->bank_size,
			.banks = memory->banks,
			.alignment = memory->alignment,
		};
	}
	part->facts.dram_banks = entry->memory[0].banks;
	part->facts.dram_bank_size = entry->memory[0].bank_size;
	part->facts.l1_per_core = entry->l1_per_core;
	return 0;
}

static int book_collect_device(struct book_reading *reading, uint32_t device)
{
	struct book_device entry;
	int r = reader_device(&reading->book->reader, device, &entry);

	if (r == -ENOENT)
		return 0;
	if (r < 0) /* no stable copy could be read: the device stays unknown */
		reading->learns = false;
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	if (reading->learns)
		totals_cache_add_device(&reading->book->totals_cache, device, &entry);
	return book_add_facts(reading, device, &entry);
}

/* Device entries lie eight to a page; pages that were never written are skipped as a whole. */
static int book_search_devices(struct book_reading *reading)
{
	struct book_file *file = reading->book->reader.file;
	uint32_t device = 0;

	while (device < BOOK_DEVICES) {
		int64_t data = file_next_data(file, book_device_offset(device));
		uint32_t end, declared;
		int r;

		if (data == -ENXIO ||
		    (data >= 0 && (uint64_t)data >= book_device_offset(BOOK_DEVICES)))
			return 0;
		if (data < 0)
			return (int)data;
		device = (uint32_t)(((uint64_t)data - BOOK_DEVICES_OFFSET) /
				    sizeof(struct book_device));
		end = (uint32_t)bits_align_up(device + 1, BOOK_PAGE / sizeof(struct book_device));
		r = reader_declared(&reading->book->reader, device, end - device, &declared);
		for (; r == 0 && device < end; device++, declared >>= 1) {
			if (declared & 1)
				r = book_collect_device(reading, device);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

static int book_single_devices(struct book_reading *reading)
{
	uint32_t device = book_rest_next_single(reading->rest, 0);
	int r = 0;

	for (; r == 0 && device < BOOK_DEVICES;
	     device = book_rest_next_single(reading->rest, device + 1))
		r = book_collect_device(reading, device);
	return r;
}

int book_devices(struct book_reading *reading)
{
	const struct totals_cache *totals_cache = &reading->book->totals_cache;
	int r = 0;

	if (!reading->recalls)
		return reading->rest ? book_single_devices(reading) : book_search_devices(reading);
	for (size_t i = 0; r == 0 && i < totals_cache->device_count; i++)
		r = book_add_facts(reading, totals_cache->devices[i].device,
				   &totals_cache->devices[i].entry);
	return r;
}
