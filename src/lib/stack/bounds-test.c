/* SPDX-License-Identifier: Apache-2.0 */

/* Finding stacks: texts in the kernel's format, other texts, and real threads. */

#include "lib/stack/bounds.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/testing/unit.h"

static const char bounds_text[] =
	"00400000-00401000 r-xp 00000000 08:01 1234   /usr/bin/[stack]x\n"
	"7f0000000000-7f0000100000 rw-p 00000000 00:00 0 \n"
	"7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n"
	"7ffd00100000-7ffd00102000 r-xp 00000000 00:00 0                          [vdso]\n";

static bool bounds_from(const char *text, uintptr_t inside, struct bounds *ret_bounds)
{
	return bounds_parse(text, strlen(text), inside, ret_bounds);
}

UNIT(a_stack_is_found_by_name_or_by_what_it_holds)
{
	struct bounds bounds = {1, 2};

	assert(bounds_from(bounds_text, 0, &bounds));
	assert(bounds.high == 0x7ffd00021000 && bounds.low == bounds.high - (128 << 20));
	assert(bounds_from(bounds_text, 0x7f0000080000, &bounds));
	assert(bounds.low == 0x7f0000000000 && bounds.high == 0x7f0000080000);
	/* The end of a mapping is exclusive. */
	bounds = (struct bounds){1, 2};
	assert(!bounds_from(bounds_text, 0x7f0000100000, &bounds));
	assert(bounds.low == 1 && bounds.high == 2);
}

UNIT(other_texts_are_nothing)
{
	static const char *const texts[] = {
		"", "\n\n", "-", "7f00", "7f00-", "x-y [stack]", "[stack]", "7f00 7f01 [stack]",
	};
	struct bounds bounds;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert(!bounds_from(texts[i], 0, &bounds));
		assert(!bounds_from(texts[i], 0x7f00, &bounds));
	}
	assert(!bounds_from("7f00-8f00 rw-p /home/x/[stack]", 0, &bounds));
}

UNIT(an_address_is_inside_with_all_its_bytes)
{
	const struct bounds bounds = {0x1000, 0x2000};

	assert(bounds_hold(&bounds, 0x1000, 16) && bounds_hold(&bounds, 0x1ff0, 16));
	assert(!bounds_hold(&bounds, 0x1ff8, 16) && !bounds_hold(&bounds, 0x2000, 16));
	assert(!bounds_hold(&bounds, 0xff8, 16) && !bounds_hold(&bounds, 0x1004, 16));
	assert(!bounds_hold(&bounds, UINTPTR_MAX - 7, 16) && !bounds_hold(&bounds, 0, 16));
	assert(!bounds_hold(&(struct bounds){0, 0}, 0, 16));
}

#define SMALL_STACK (1u << 20)
#define BOUNDS_FRAMES 65536u /* more than a call takes */

static void *bounds_of_thread(void *context)
{
	struct bounds bounds;
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t *outside = context;
	size_t left;

	bounds_find(&bounds);
	left = here - bounds.low;
	assert(left < SMALL_STACK && bounds_room(&bounds) < left);
	assert(bounds_room(&bounds) > left - BOUNDS_FRAMES);
	assert(bounds.low < here && here < bounds.high);
	assert(*outside < bounds.low || *outside >= bounds.high);
	return NULL;
}

UNIT(each_thread_finds_its_own_stack_bounds)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct rlimit limit;
	pthread_attr_t attributes;
	struct bounds bounds;
	pthread_t thread;
	size_t room;

	bounds_find(&bounds);
	assert(bounds.low < here && here < bounds.high);
	assert(pthread_attr_init(&attributes) == 0);
	assert(pthread_attr_setstacksize(&attributes, SMALL_STACK) == 0);
	assert(pthread_create(&thread, &attributes, bounds_of_thread, &here) == 0);
	assert(pthread_join(thread, NULL) == 0);
	/* The main thread's is as large as its limit says; on another stack nothing is left. */
	assert(getrlimit(RLIMIT_STACK, &limit) == 0);
	limit.rlim_cur = 4 << 20;
	assert(setrlimit(RLIMIT_STACK, &limit) == 0);
	room = bounds_room(&bounds);
	assert(room > 3 << 20 && room < limit.rlim_cur);
	bounds.high = bounds.low + 1;
	assert(bounds_room(&bounds) == 0);
	assert(bounds_room(&(struct bounds){0, 0}) == 0);
}
