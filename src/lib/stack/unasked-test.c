/* SPDX-License-Identifier: Apache-2.0 */

/* Without TTMEM_STACKS there are stacks as with auto, and a provider's frames once it is registered. */

#include <ttmem/provider.h>
#include <ttmem/ttmem.h>

#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

#define UNASKED_ROUNDS 200u

static uint32_t unasked_looks;
static uint32_t unasked_goes_on;

static uint64_t unasked_look(uint32_t depth)
{
	(void)depth;
	__atomic_fetch_add(&unasked_looks, 1, __ATOMIC_RELAXED);
	return 0x1234567;
}

static void unasked_tell(uint32_t depth, struct ttmem_frames *frames)
{
	struct ttmem_frame frame = {
		.struct_size = sizeof(frame),
		.flags = TTMEM_FRAME_ENTRY,
		.line = 7,
		.function = "step",
		.file = "model.py",
	};

	(void)depth;
	ttmem_frames_add(frames, &frame);
}

static const struct ttmem_provider unasked_provider = {
	.struct_size = sizeof(unasked_provider),
	.look = unasked_look,
	.tell = unasked_tell,
};

/* @stacks: NULL = unset. */
static void unasked_start(const char *stacks)
{
	observer_track();
	/* NOLINTBEGIN(concurrency-mt-unsafe): before there are threads */
	if (stacks)
		assert(setenv("TTMEM_STACKS", stacks, 1) == 0);
	else
		assert(unsetenv("TTMEM_STACKS") == 0);
	/* NOLINTEND(concurrency-mt-unsafe) */
}

static __attribute__((noinline)) void unasked_alloc(uint64_t address)
{
	CALLS_FRAME_BEGIN();
	ttmem_alloc(0, TTMEM_DRAM, address, 64, NULL);
	CALLS_FRAME_END();
}

/* How many frames of each sort the buffer has. */
static struct book_stack unasked_find(uint64_t address)
{
	struct book_frame frames[CALLS_FRAMES];
	struct book_stack head = {0};
	const struct book_record *row;
	struct observer w;

	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	row = observer_row(&w, TTMEM_DRAM, address);
	assert(row && observer_header(&w)->lost_frames == 0);
	if (row->stack)
		assert(reader_stack(&w.reader, row->stack, &head, frames, CALLS_FRAMES) > 0);
	observer_close(&w);
	return head;
}

UNIT(stacks_are_on_through_every_kind_of_frame)
{
	calls_need_tables();
	unasked_start(NULL);
	for (uint64_t i = 0; i < 100; i++)
		calls_checked(i);
	assert(calls_lost() == 0);
}

UNIT(a_provider_adds_its_frames_while_it_is_registered)
{
	struct book_stack head;

	unasked_start(NULL);
	unasked_alloc(1);
	assert(ttmem_provider(&unasked_provider) == 0);
	unasked_alloc(2);
	assert(ttmem_provider(NULL) == 0);
	unasked_alloc(3);
	head = unasked_find(1);
	assert(head.native > 1 && head.python == 0 && calls_lost() == 0);
	head = unasked_find(2);
	assert(head.native > 1 && head.python == 1);
	head = unasked_find(3);
	assert(head.native > 1 && head.python == 0);
}

UNIT(a_provider_may_come_before_the_first_event)
{
	struct book_stack head;

	unasked_start(NULL);
	assert(ttmem_provider(&unasked_provider) == 0);
	unasked_alloc(1);
	head = unasked_find(1);
	assert(head.native > 1 && head.python == 1);
}

UNIT(stacks_off_wins_over_a_provider)
{
	struct book_stack head;

	unasked_start("off");
	assert(ttmem_provider(&unasked_provider) == 0);
	unasked_alloc(1);
	assert(ttmem_provider(NULL) == 0 && ttmem_provider(&unasked_provider) == 0);
	unasked_alloc(2);
	head = unasked_find(2);
	assert(head.native == 0 && head.python == 0 && calls_lost() == 0 && unasked_looks == 0);
}

UNIT(a_forked_child_has_them_as_well)
{
	struct book_stack head;
	pid_t child;

	unasked_start(NULL);
	unasked_alloc(1);
	assert(ttmem_provider(&unasked_provider) == 0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		unasked_alloc(2);
		head = unasked_find(2);
		assert(head.native > 1 && head.python == 1);
		_exit(0);
	}
	observer_wait(child);
}

static void *unasked_thread(void *context)
{
	uint64_t address = *(const uint64_t *)context;

	for (uint32_t i = 0;
	     i < UNASKED_ROUNDS || __atomic_load_n(&unasked_goes_on, __ATOMIC_ACQUIRE); i++) {
		unasked_alloc(address);
		ttmem_free(0, TTMEM_DRAM, address);
	}
	unasked_alloc(address);
	return NULL;
}

/* They have had events before, and are in the middle of some. */
UNIT(threads_that_run_already_have_them_from_then_on)
{
	static uint64_t addresses[] = {0x1000, 0x2000, 0x3000};
	pthread_t threads[ARRAY_SIZE(addresses)];

	unasked_start(NULL);
	unasked_goes_on = 1;
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		assert(pthread_create(&threads[i], NULL, unasked_thread, &addresses[i]) == 0);
	unasked_alloc(1);
	assert(ttmem_provider(&unasked_provider) == 0);
	unasked_alloc(2);
	assert(unasked_find(2).native > 1);
	__atomic_store_n(&unasked_goes_on, 0, __ATOMIC_RELEASE);
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		assert(pthread_join(threads[i], NULL) == 0);
		assert(unasked_find(addresses[i]).native > 1);
		assert(unasked_find(addresses[i]).python == 1);
	}
}
