/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether C calls functions of C++ as libttmem-metal.so does, on this processor: results in registers or in memory,
 * and a function from a virtual table. `./dev test cross` runs it for aarch64, where libttmem-metal.so has met no
 * tt-metal yet.
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "metal/metal-names.h"

const void *convention_device(void);
struct metal_vector convention_list(const void *device) __asm__("_ZNK6Device4listEv");
struct metal_optional convention_some(const void *device) __asm__("_ZNK6Device4someEv");
struct metal_optional convention_none(const void *device) __asm__("_ZNK6Device4noneEv");
struct metal_grid convention_grid(const void *device) __asm__("_ZNK6Device4gridEv");
struct metal_statistics
convention_statistics(const void *device,
		      const uint32_t *type) __asm__("_ZNK6Device10statisticsERK4Type");
uint64_t convention_base(const void *device,
			 const uint8_t *memory) __asm__("_ZNK6Device4baseERK6Memory");
uint32_t convention_alignment(const void *device,
			      uint32_t type) __asm__("_ZNK6Device9alignmentE4Type");
bool convention_is_seven(const void *device) __asm__("_ZNK6Device8is_sevenEv");
int32_t convention_arch(const void *device) __asm__("_ZNK6Device4archEv");
extern const void *const convention_table[] __asm__("_ZTV6Device");

static int convention_expect(bool is_so, const char *what)
{
	if (!is_so)
		(void)printf("%s is not passed as expected\n", what);
	return !is_so;
}

static int convention_results(const void *device)
{
	const uint32_t type = 1;
	const uint8_t memory = 1;
	const struct metal_vector list = convention_list(device);
	const struct metal_statistics all = convention_statistics(device, &type);
	int bad = 0;

	bad += convention_expect((const int *)list.end - (const int *)list.begin == 3 &&
					 ((const int *)list.begin)[2] == 6,
				 "a vector");
	bad += convention_expect(convention_some(device).has_value &&
					 convention_some(device).value == 8 &&
					 !convention_none(device).has_value,
				 "an optional number");
	bad += convention_expect(convention_grid(device).x == 7 && convention_grid(device).y == 14,
				 "a pair");
	bad += convention_expect(all.total == 7 && all.largest_free == 1, "a struct of four");
	bad += convention_expect(convention_base(device, &memory) == 101, "a byte by reference");
	bad += convention_expect(convention_alignment(device, type) == 33, "an enum");
	bad += convention_expect(convention_is_seven(device), "a bool");
	return bad;
}

/* Two words before the first slot, two slots for the destructor, then in the order of the class. */
static int convention_slots(const void *device)
{
	const void *arch;
	int32_t (*id)(const void *object);
	int32_t (*named)(const void *object) = convention_arch;

	memcpy(&arch, &named, sizeof(arch));
	memcpy(&id, &convention_table[2 + 3], sizeof(id));
	return convention_expect(*(const void *const *)device == &convention_table[2], "a table") +
	       convention_expect(convention_table[2 + 2] == arch && id(device) == 7, "a slot");
}

int main(void)
{
	const void *device = convention_device();

	return convention_results(device) + convention_slots(device) != 0;
}
