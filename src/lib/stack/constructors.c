/* SPDX-License-Identifier: Apache-2.0 */

/* Examines libc's first frame. */

#include "lib/stack/constructors.h"

#include <gnu/libc-version.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "lib/process/linked.h"
#include "lib/stack/modules.h"

#if defined(__x86_64__)

#define CONSTRUCTORS_WORDS 64u  /* at most, in the frames of _start and __libc_start_main() */
#define CONSTRUCTORS_CODE 1024u /* more than the size of __libc_start_main() */
#define CONSTRUCTORS_CALL 7u    /* length of the longest call instruction */
#define CONSTRUCTORS_ALIGNMENT 16u

enum constructors_call {
	CONSTRUCTORS_UNKNOWN = 0,
	CONSTRUCTORS_CONSTRUCTOR,
	CONSTRUCTORS_MAIN,
};

/* libc's. Weak: other libcs may lack them. */
extern void *__libc_stack_end __attribute__((weak));
extern int __libc_start_main(void) __attribute__((weak));

static bool constructors_was_over;

/* An indirect call: opcode ff /2; the ModRM byte gives its length. */
static bool constructors_is_indirect(const uint8_t *end)
{
	for (size_t length = 2; length <= CONSTRUCTORS_CALL; length++) {
		const uint8_t *code = end - length;
		uint8_t mode = code[1] >> 6;
		size_t expected = 2;

		if (code[0] != 0xff || (code[1] >> 3 & 7) != 2)
			continue;
		if (mode != 3 && (code[1] & 7) == 4)
			expected++;
		if (mode == 1)
			expected++;
		if (mode == 2 || (mode == 0 && (code[1] & 7) == 5))
			expected += 4;
		if (expected == length)
			return true;
	}
	return false;
}

/* What libc's code calls just before @address. */
static enum constructors_call constructors_judge(uintptr_t address, const struct linked_file *libc)
{
	/* main()'s result goes to exit(). No known libc calls main() right there, but one might. */
	static const uint8_t leaving[] = {0x89, 0xc7, 0xe8};
	const uint8_t *end = (const uint8_t *)address;
	int32_t distance;
	uintptr_t target;

	memcpy(&distance, end - sizeof(distance), sizeof(distance));
	target = address + (uintptr_t)(intptr_t)distance;
	if (end[-5] == 0xe8 && target >= libc->low && target < libc->high)
		return CONSTRUCTORS_MAIN;
	if (memcmp(end, leaving, sizeof(leaving)) == 0)
		return CONSTRUCTORS_MAIN;
	return constructors_is_indirect(end) ? CONSTRUCTORS_CONSTRUCTOR : CONSTRUCTORS_UNKNOWN;
}

/* The outermost return address in __libc_start_main(); 0 = none. */
static __attribute__((no_sanitize("address"))) uintptr_t
constructors_find(const struct bounds *bounds, uintptr_t top, uintptr_t low)
{
	uintptr_t begin = (uintptr_t)&__libc_start_main;

	for (size_t i = 1; i <= CONSTRUCTORS_WORDS; i++) {
		uintptr_t at = top - i * sizeof(uintptr_t);
		uintptr_t address;

		if (at <= low || !bounds_hold(bounds, at, sizeof(at)))
			break;
		address = *(const uintptr_t *)at;
		/* Beyond the longest call, so that only its own code is read. */
		if (address >= begin + CONSTRUCTORS_CALL && address - begin < CONSTRUCTORS_CODE)
			return address;
	}
	return 0;
}

/*
 * Whether the loader is still running: the kernel started it, and the first word on the stack is
 * its return address, where it continues once all constructors of libraries have run. The program
 * overwrites that word.
 */
static __attribute__((no_sanitize("address"))) bool
constructors_is_loading(const struct bounds *bounds, uintptr_t top, uintptr_t low)
{
	uintptr_t at = bits_align_down(top, CONSTRUCTORS_ALIGNMENT) - sizeof(uintptr_t);

	return at > low && bounds_hold(bounds, at, sizeof(at)) &&
	       modules_is_delicate((const uintptr_t *)at, 1);
}

bool constructors_are_over(const struct bounds *bounds, const void *frame)
{
	uintptr_t top = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
	struct linked_file libc, other;
	uintptr_t address;

	if (likely(__atomic_load_n(&constructors_was_over, __ATOMIC_RELAXED)))
		return true;
	/* On any stack but the initial one nothing can be found out, and need not be. */
	if (!bounds_hold(bounds, top, sizeof(top)) || (uintptr_t)frame >= top)
		return true;
	/*
	 * Before 2.35 libc called main() in the same way as constructors, and _dl_find_object() did
	 * not exist. A replacement of the function may call them differently.
	 */
	if (!linked_find((uintptr_t)&__libc_start_main + 1, &libc) ||
	    !linked_find((uintptr_t)&gnu_get_libc_version + 1, &other) || libc.low != other.low)
		return true;
	address = constructors_find(bounds, top, (uintptr_t)frame);
	if (!address)
		return !constructors_is_loading(bounds, top, (uintptr_t)frame);
	if (constructors_judge(address, &libc) == CONSTRUCTORS_CONSTRUCTOR)
		return false;
	__atomic_store_n(&constructors_was_over, true, __ATOMIC_RELAXED);
	return true;
}

bool constructors_show_one(const uintptr_t *addresses, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (modules_is_loader_code(addresses[i] - CONSTRUCTORS_CALL, addresses[i]) &&
		    constructors_is_indirect((const uint8_t *)addresses[i]))
			return true;
	}
	return false;
}

#else

bool constructors_are_over(const struct bounds *bounds, const void *frame)
{
	(void)bounds;
	(void)frame;
	return true;
}

bool constructors_show_one(const uintptr_t *addresses, size_t count)
{
	(void)addresses;
	(void)count;
	return false;
}

#endif
