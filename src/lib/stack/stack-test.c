/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks, most of them by frame pointers, as another process reads them from the book. The library is the real
 * one, so its own frames are in another file.
 */

#include <ttmem/ttmem.h>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

UNIT(a_stack_is_the_calls_that_led_there)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	calls_start("fp");
	for (uint64_t i = 0; i < 3; i++) {
		expected.count = 0;
		calls_middle(i, &expected);
		calls_read(i, &found);
		calls_check(&found, &expected);
	}
	assert(strstr(found.path, "lib-stack"));
	assert(calls_lost() == 0);
}

UNIT(the_same_place_has_the_same_id)
{
	struct calls_expected expected = {.count = 0};
	uint32_t first = 0;
	volatile uint64_t end = 8; /* unknown to the compiler: a loop, not eight calls */
	struct observer w;
	CALLS_FRAME_BEGIN();

	calls_start("fp");
	for (uint64_t i = 0; i < end; i++) {
		expected.count = 0;
		calls_middle(i, &expected);
	}
	CALLS_FRAME_END();
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	first = observer_row(&w, TTMEM_DRAM, 0)->stack;
	assert(first);
	for (uint64_t i = 0; i < 8; i++)
		assert(observer_row(&w, TTMEM_DRAM, i)->stack == first);
	observer_close(&w);
}

UNIT(stacks_off_takes_none)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	observer_track_without_stacks();
	calls_middle(1, &expected);
	calls_read(1, &found);
	assert(found.count == 0 && calls_lost() == 0);
}

UNIT(the_depth_is_a_setting)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	calls_start("fp");
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACK_DEPTH", "2", 1) == 0);
	calls_middle(1, &expected);
	calls_read(1, &found);
	assert(found.count == 2 && found.address[1] == expected.address[0]);
}

/* A book's settings are read once, so each case is a process. Return: how many frames. */
static size_t stack_frames_with(const char *how, const char *depth)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;
	pid_t child = fork();
	int status;

	assert(child >= 0);
	if (child == 0) {
		calls_start(how);
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads */
		assert(setenv("TTMEM_STACK_DEPTH", depth, 1) == 0);
		calls_recurse(100, &expected);
		calls_read(0, &found);
		_exit((int)found.count);
	}
	assert(waitpid(child, &status, 0) == child && WIFEXITED(status));
	return (size_t)WEXITSTATUS(status);
}

UNIT(settings_are_taken_as_people_write_them)
{
	static const char *const on[] = {"fp", "FP", " fp", "auto", "Auto", "1", "on", "YES"};
	static const char *const off[] = {"off", "OFF", "0", "no", "None", "", "2", "fpp", "true"};

	for (size_t i = 0; i < ARRAY_SIZE(on); i++)
		assert(stack_frames_with(on[i], "3") == 3);
	for (size_t i = 0; i < ARRAY_SIZE(off); i++)
		assert(stack_frames_with(off[i], "3") == 0);
	unit_expect_fds(0);
}

UNIT(a_depth_that_is_none_is_the_usual_one)
{
	static const char *const wrong[] = {"0", "65", "-1", "8x", "", "all", "1e1"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert(stack_frames_with("fp", wrong[i]) == 16);
	assert(stack_frames_with("fp", "64") == 64);
	unit_expect_fds(0);
}

UNIT(a_deep_recursion_keeps_the_innermost)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	calls_start("fp");
	calls_recurse(20000, &expected);
	calls_read(0, &found);
	assert(found.count == 16);
	calls_check(&found, &expected);
	for (size_t i = 3; i < found.count; i++)
		assert(calls_is_in(found.address[i], (uintptr_t)&calls_recurse));
}

/* Frame pointers that point nowhere, or anywhere: the walk must end; its result does not matter. */
static __attribute__((noinline)) void stack_corrupt(uint64_t address, uintptr_t next)
{
	uintptr_t *frame = __builtin_frame_address(0);
	uintptr_t right = frame[0];
	struct calls_expected expected = {.count = 0};

	__atomic_store_n(&frame[0], next, __ATOMIC_SEQ_CST);
	calls_leaf(address, &expected);
	__atomic_store_n(&frame[0], right, __ATOMIC_SEQ_CST);
}

UNIT(a_corrupted_chain_is_survived)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t wild[] = {
		0,
		1,
		8,
		here - 64,
		here + 1,
		here + 7,
		UINTPTR_MAX,
		UINTPTR_MAX - 7,
		UINTPTR_MAX - 15,
		(uintptr_t)&calls_leaf,
		UINT64_C(0x800000000000),
		UINT64_C(0xffff800000000000),
		4096,
		here | UINT64_C(1) << 62,
	};
	struct calls_found found;

	calls_start("fp");
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		stack_corrupt(i, wild[i]);
		calls_read(i, &found);
		assert(found.count >= 2 && calls_is_in(found.address[0], (uintptr_t)&calls_leaf));
	}
	/* Any word of the stack may be taken for a frame, up to the last one. */
	for (uintptr_t at = here; at < here + 2048; at += 8)
		stack_corrupt(1000 + at, at);
}

static uint64_t stack_handled;

static void stack_handler(int number)
{
	CALLS_FRAME_BEGIN();

	(void)number;
	ttmem_alloc(0, TTMEM_DRAM, 500, 64, NULL);
	stack_handled++;
	CALLS_FRAME_END();
}

/* qemu's user emulation has no vDSO, no gap below the stack, and copies whole pages on fork. */
static bool stack_is_emulated(void)
{
	return getauxval(AT_SYSINFO_EHDR) == 0;
}

static void stack_need_kernel(void)
{
	if (stack_is_emulated())
		unit_skip("not on a kernel of its own");
}

/* It shows no return from a handler. */
static void stack_handler_lost(int number)
{
	(void)number;
	stack_corrupt(500, 0);
	stack_handled++;
}

static void stack_check_alternate(void (*handler)(int number))
{
	static uint8_t memory[65536] __attribute__((aligned(16)));
	const stack_t other = {.ss_sp = memory, .ss_size = sizeof(memory)};
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	stack_need_kernel();
	calls_start("fp");
	calls_middle(1, &expected);
	assert(sigaltstack(&other, NULL) == 0);
	observer_handle(SIGUSR1, handler, SA_ONSTACK);
	assert(raise(SIGUSR1) == 0 && stack_handled == 1);
	calls_read(500, &found);
	assert(found.count == 0 && calls_lost() == 1);
}

UNIT(an_alternate_stack_has_none)
{
	stack_check_alternate(stack_handler);
}

UNIT(an_alternate_stack_whose_chain_ends_has_none)
{
	stack_check_alternate(stack_handler_lost);
}

UNIT(a_handler_does_not_ask_the_loader)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	if (OBSERVER_TSAN)
		unit_skip("TSan calls handlers later, from where it likes");
	stack_need_kernel();
	calls_start("fp");
	calls_middle(1, &expected);
	observer_handle(SIGUSR1, stack_handler, 0);
	assert(raise(SIGUSR1) == 0 && stack_handled == 1);
	calls_read(500, &found);
	assert(found.count == 0 && calls_lost() == 1);
}

static int stack_callback(struct dl_phdr_info *info, size_t size, void *context)
{
	struct calls_expected *expected = context;
	CALLS_FRAME_BEGIN();

	(void)info;
	(void)size;
	if (expected->count == 0)
		calls_middle(7, expected);
	CALLS_FRAME_END();
	return 0;
}

UNIT(a_callback_of_the_loader_has_none)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	calls_start("fp");
	dl_iterate_phdr(stack_callback, &expected);
	calls_read(7, &found);
	assert(found.count == 0 && calls_lost() == 1);
}

#define STACK_THREADS 1000u
#define STACK_AT_ONCE 20u

struct stack_thread {
	pthread_t thread;
	uint64_t number;
	struct calls_expected expected;
};

static void *stack_thread(void *context)
{
	struct stack_thread *self = context;

	calls_middle(self->number, &self->expected);
	calls_middle(self->number + STACK_THREADS, &self->expected);
	return NULL;
}

UNIT(a_thousand_threads_share_one)
{
	struct stack_thread *threads = calloc(STACK_THREADS, sizeof(*threads));
	size_t count = stack_is_emulated() ? STACK_THREADS / 5 : STACK_THREADS; /* that is slow */
	uint32_t first[2] = {0, 0};
	uint32_t lost = 0;
	struct observer w;

	calls_start("fp");
	assert(threads);
	for (size_t i = 0; i < count + STACK_AT_ONCE; i++) {
		if (i >= STACK_AT_ONCE)
			assert(pthread_join(threads[i - STACK_AT_ONCE].thread, NULL) == 0);
		if (i >= count)
			continue;
		threads[i].number = i;
		assert(pthread_create(&threads[i].thread, NULL, stack_thread, &threads[i]) == 0);
	}
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	for (size_t i = 0; i < 2 * count; i++) {
		uint32_t *same = &first[i / count];
		uint64_t address = i % count + i / count * STACK_THREADS;
		const struct book_record *row = observer_row(&w, TTMEM_DRAM, address);

		assert(row);
		if (row->stack == 0) {
			lost++;
			continue;
		}
		assert(*same == 0 || *same == row->stack);
		*same = row->stack;
	}
	assert(first[0] && first[1] && first[0] != first[1]);
	/*
	 * qemu generates /proc/self/maps from the kernel's list and its own, while other threads
	 * map and unmap. Sometimes it omits a mapping that has changed in only one of them, along
	 * with a neighbour: then a thread does not find its stack.
	 */
	assert(observer_header(&w)->lost_stacks == lost && (lost == 0 || stack_is_emulated()));
	observer_close(&w);
	free(threads);
}

static void stack_start(const char *how)
{
	if (strcmp(how, "fp") == 0)
		calls_start(how);
	else
		calls_start_tables(how);
}

/* From the same place before and after, so that what the parent remembers would fit. */
static void stack_in_child(const char *how)
{
	struct calls_expected expected;
	struct calls_found found;
	volatile uint64_t last = 8; /* keeps the loop from being unrolled */
	pid_t child = -1;

	stack_need_kernel();
	stack_start(how);
	/* The child's ids are others then. */
	expected.count = 0;
	calls_recurse(3, &expected);
	for (uint64_t i = 1; i <= last; i++) {
		if (i == last) {
			child = fork();
			assert(child >= 0);
		}
		expected.count = 0;
		calls_middle(i, &expected);
	}
	calls_read(last, &found);
	calls_check(&found, &expected);
	if (child == 0)
		_exit(0);
	observer_wait(child);
}

UNIT(a_forked_child_has_stacks_of_its_own_book)
{
	stack_in_child("fp");
}

UNIT(a_forked_child_has_stacks_of_its_own_book_auto)
{
	stack_in_child("auto");
}

static __attribute__((noinline)) void stack_ways(uint64_t address, uint32_t way,
						 struct calls_expected *expected)
{
	CALLS_FRAME_BEGIN();
	expected->count = 0;
	switch (way) {
	case 1:
		calls_middle(address + 1, expected);
		break;
	case 2:
		calls_middle(address + 2, expected);
		break;
	case 3:
		calls_middle(address + 3, expected);
		break;
	case 4:
		calls_middle(address + 4, expected);
		break;
	case 5:
		calls_middle(address + 5, expected);
		break;
	default:
		calls_middle(address, expected);
	}
	CALLS_FRAME_END();
}

/* The stack pointer and the first return addresses are the same. */
static void stack_tell_apart(const char *how)
{
	struct calls_expected first = {.count = 0}, expected;
	struct calls_found found;
	volatile uint32_t ways = 6; /* keeps the loop from being unrolled */

	stack_start(how);
	for (uint32_t way = 0; way < ways; way++) {
		uint32_t often = way == 0 ? 6 : way == 1 ? 3 : 2;

		for (uint64_t i = 0; i < often; i++) {
			uint64_t address = 100 * (way + 10 * i);

			stack_ways(address, way, &expected);
			if (way == 0)
				first = expected;
			calls_read(address + way, &found);
			calls_check(&found, &expected);
			assert(expected.address[0] == first.address[0]);
			assert(way == 0 || expected.address[1] != first.address[1]);
		}
	}
}

UNIT(stacks_that_differ_further_out_are_told_apart)
{
	stack_tell_apart("fp");
}

UNIT(stacks_that_differ_further_out_are_told_apart_auto)
{
	stack_tell_apart("auto");
}

static __attribute__((noinline)) void stack_free(uint64_t address)
{
	CALLS_FRAME_BEGIN();
	ttmem_free(0, TTMEM_DRAM, address);
	CALLS_FRAME_END();
}

UNIT(a_double_free_says_who_freed)
{
	struct calls_expected expected = {.count = 0};
	struct book_incident incident;
	struct calls_found found[2];
	struct observer w;

	calls_start("fp");
	calls_middle(1, &expected);
	stack_free(1);
	stack_free(1);
	assert(observer_open(&w, getpid()));
	assert(reader_incident(&w.reader, BOOK_INCIDENT_DOUBLE_FREE, 0, &incident) == 0);
	calls_read_id(&w, incident.first.stack, &found[0]);
	calls_read_id(&w, incident.second.stack, &found[1]);
	for (size_t i = 0; i < 2; i++)
		assert(calls_is_in(found[i].address[0], (uintptr_t)&stack_free));
	/* Two successive calls. */
	assert(found[0].address[1] < found[1].address[1]);
	observer_close(&w);
}

static void stack_first_frame_is(struct observer *w, uint64_t address, uintptr_t function)
{
	struct calls_found found;

	calls_read_id(w, observer_row(w, TTMEM_DRAM, address)->stack, &found);
	assert(found.count > 0 && calls_is_in(found.address[0], function));
}

static __attribute__((noinline)) void stack_other_calls(void)
{
	const uint32_t devices[] = {0, 1};
	const struct ttmem_alloc_args args = {
		.struct_size = sizeof(args), .type = TTMEM_DRAM, .address = 11, .size = 64};
	CALLS_FRAME_BEGIN();

	ttmem_alloc_mesh(devices, 2, TTMEM_DRAM, 10, 64, NULL);
	ttmem_alloc_ex(&args);
	CALLS_FRAME_END();
}

UNIT(the_other_calls_have_stacks_too)
{
	struct observer w;

	calls_start("fp");
	stack_other_calls();
	assert(observer_open(&w, getpid()));
	assert(observer_look(&w, 0, VIEW_LIVING));
	stack_first_frame_is(&w, 10, (uintptr_t)&stack_other_calls);
	stack_first_frame_is(&w, 11, (uintptr_t)&stack_other_calls);
	assert(observer_look(&w, 1, VIEW_LIVING));
	stack_first_frame_is(&w, 10, (uintptr_t)&stack_other_calls);
	observer_close(&w);
}

/* Files are loaded and unloaded: the table is reread, and the frames are right before and after. */
UNIT(unloaded_and_reloaded_files_are_told_apart)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;
	void *library;

	calls_start("fp");
	calls_leaf(1, &expected);
	library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	assert(library);
	calls_middle(2, &expected);
	assert(dlclose(library) == 0);
	expected.count = 0;
	calls_middle(3, &expected);
	calls_read(3, &found);
	calls_check(&found, &expected);
	assert(calls_lost() == 0);
}
