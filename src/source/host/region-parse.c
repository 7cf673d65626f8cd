/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The layouts of tt-metal's regions, little-endian. Version 1 knows kernels (9280 bytes), versions 3 and 4
 * do not (8576 bytes); of version 2 there were both, told apart by the size of the file.
 *
 *			  wide	narrow
 *	version u32	     0	     0
 *	stamp u64	     8	     8	of the last change
 *	asic id u64	    32	    32	version 1: board << 8 | place on it; later the chip's own
 *	device u32	    40	    40	-1 or larger than any device: not known
 *	totals u64...	    48	    48	DRAM, L1, L1_SMALL, TRACE, CB; wide: KERNEL
 *	chips[16]	    96	    88	number u32, remote u32, then as the totals
 *	processes[64]	   992	   856	pid i32, pad, as the totals, stamp u64, name[64]
 *	state u32		  8536	version 4: 0 new, 1 being made, 0x52454459 ready
 *
 * A region is about one chip. The slots of chips are the numbers that processes have for it, each
 * with what was allocated under that number; the rows of processes have the same bytes, so only the
 * flag of the region's own number is used. A slot of processes is unused if its pid is 0, or -1
 * while it is being given back.
 */

#include <string.h>

#include "model/types.h"
#include "source/host/region.h"

#define REGION_WIDE_SIZE 9280u
#define REGION_NARROW_SIZE 8576u
#define REGION_STATE 8536u
#define REGION_READY UINT32_C(0x52454459)
#define REGION_VERSION_MAX 4u
#define REGION_KINDS 6u
#define REGION_CHIPS 16u

struct region_layout {
	uint32_t size;
	uint32_t kinds; /* of memory */
	uint32_t chips, chip_size;
	uint32_t processes, process_size;
};

static const struct region_layout region_wide = {REGION_WIDE_SIZE, 6, 96, 56, 992, 128};
static const struct region_layout region_narrow = {REGION_NARROW_SIZE, 5, 88, 48, 856, 120};

/* In the order of a region. */
static const uint32_t region_types[REGION_KINDS] = {
	TYPES_DRAM, TYPES_L1, TYPES_L1_SMALL, TYPES_TRACE, TYPES_CB, TYPES_KERNEL,
};

_Static_assert(REGION_WIDE_SIZE == REGION_SIZE_MAX, "size");
_Static_assert(96 + REGION_CHIPS * 56 == 992, "chips");
_Static_assert(88 + REGION_CHIPS * 48 == 856, "chips");
_Static_assert(856 + REGION_PROCESSES * 120 == REGION_STATE, "processes");

static uint32_t region_u32(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static uint64_t region_u64(const unsigned char *bytes)
{
	return region_u32(bytes) | (uint64_t)region_u32(bytes + 4) << 32;
}

static void region_amounts(const struct region_layout *layout, const unsigned char *bytes,
			   uint64_t ret_used[BOOK_TYPES])
{
	for (uint32_t i = 0; i < layout->kinds; i++)
		ret_used[region_types[i]] = region_u64(bytes + i * 8);
}

static const struct region_layout *region_layout(uint32_t version, size_t length)
{
	if (version == 1)
		return &region_wide;
	return version == 2 && length >= REGION_WIDE_SIZE ? &region_wide : &region_narrow;
}

static bool region_is_remote(const struct region_layout *layout, const unsigned char *bytes,
			     uint32_t device)
{
	for (uint32_t i = 0; i < REGION_CHIPS; i++) {
		const unsigned char *slot = bytes + layout->chips + i * layout->chip_size;

		if (region_u32(slot) == device)
			return region_u32(slot + 4) != 0;
	}
	return false;
}

static void region_processes(const struct region_layout *layout, const unsigned char *bytes,
			     struct region *region)
{
	region->is_full = true;
	for (uint32_t i = 0; i < REGION_PROCESSES; i++) {
		const unsigned char *slot = bytes + layout->processes + i * layout->process_size;
		const unsigned char *stamp = slot + 8 + (size_t)layout->kinds * 8;
		struct region_process *process = &region->processes[region->process_count];
		uint32_t pid = region_u32(slot);

		if (pid == 0)
			region->is_full = false;
		if (pid == 0 || pid > INT32_MAX)
			continue;
		process->pid = pid;
		process->stamp = region_u64(stamp);
		region_amounts(layout, slot + 8, process->used);
		memcpy(process->name, stamp + 8, REGION_NAME);
		region->process_count++;
	}
}

int region_parse(const void *bytes, size_t length, struct region *ret_region)
{
	const struct region_layout *layout;
	const unsigned char *from = bytes;
	struct region region = {0};

	if (length < 4 || (region.version = region_u32(from)) == 0)
		return REGION_UNFINISHED;
	if (region.version > REGION_VERSION_MAX)
		return REGION_UNKNOWN;
	layout = region_layout(region.version, length);
	if (length < layout->size)
		return REGION_UNFINISHED;
	if (region.version == 4 && region_u32(from + REGION_STATE) != REGION_READY)
		return REGION_UNFINISHED;

	for (uint32_t i = 0; i < layout->kinds; i++)
		region.types |= UINT32_C(1) << region_types[i];
	region.is_place = region.version == 1;
	region.id = region_u64(from + 32);
	region.device = region_u32(from + 40);
	if (region.device >= BOOK_DEVICES)
		return REGION_BROKEN;
	region.stamp = region_u64(from + 8);
	region_amounts(layout, from + 48, region.used);
	region.remote = region_is_remote(layout, from, region.device);
	region_processes(layout, from, &region);
	*ret_region = region;
	return 0;
}
