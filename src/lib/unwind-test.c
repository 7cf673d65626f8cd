/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks by unwind tables, as an outsider reads them from the book: through code that has no frame pointers,
 * on damaged stacks, by many threads and in forked children. The library is the real one.
 */

#include <ttmem/ttmem.h>

#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/unit.h"
#include "lib/chain.h"
#include "lib/witness.h"

static bool unwind_is_loaded(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;

	assert(maps);
	while (fgets(line, sizeof(line), maps))
		found |= strstr(line, "/libunwind-") != NULL;
	assert(fclose(maps) == 0);
	return found;
}

/* Looked for as the library does, but nothing is left loaded by it. */
static void unwind_need(void)
{
	void *library = dlopen("libunwind-x86_64.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		unit_skip("no libunwind here");
	assert(dlclose(library) == 0);
}

static void unwind_start(const char *how)
{
	unwind_need();
	chain_start(how);
	/* The book, and a pipe that libunwind makes and we do not use. */
	if (strcmp(how, "fp") != 0)
		unit_expect_fds(3);
}

static void unwind_expect(struct chain_expected *expected, const void *address)
{
	expected->address[expected->count++] = (uintptr_t)address;
}

/* No frame pointer, but a frame. */
static __attribute__((noinline)) void unwind_bare(uint64_t address, struct chain_expected *expected)
{
	volatile uint8_t room[200];

	room[address % sizeof(room)] = 1;
	chain_leaf(address, expected);
	unwind_expect(expected, __builtin_return_address(0));
}

/* A stack that the function moves to where it is aligned. */
static __attribute__((noinline)) void unwind_aligned(uint64_t address,
						     struct chain_expected *expected)
{
	volatile uint8_t room[128] __attribute__((aligned(128)));

	room[address % sizeof(room)] = 1;
	unwind_bare(address, expected);
	unwind_expect(expected, __builtin_return_address(0));
}

/* A frame whose size only the run knows. */
static __attribute__((noinline)) void unwind_sized(uint64_t address,
						   struct chain_expected *expected)
{
	volatile uint8_t *room = alloca(address % 4096 + 16);

	room[0] = 1;
	unwind_aligned(address, expected);
	unwind_expect(expected, __builtin_return_address(0));
}

static __attribute__((noinline)) void unwind_outer(uint64_t address,
						   struct chain_expected *expected)
{
	expected->count = 0;
	unwind_sized(address, expected);
	unwind_expect(expected, __builtin_return_address(0));
}

static void unwind_checked(uint64_t address)
{
	struct chain_expected expected;
	struct chain_found found;

	unwind_outer(address, &expected);
	chain_read(address, &found);
	assert(expected.count == 5);
	chain_check(&found, &expected);
}

static void unwind_check_frames(const char *how)
{
	unwind_start(how);
	for (uint64_t i = 0; i < 100; i++)
		unwind_checked(i);
	assert(chain_lost() == 0);
}

UNIT(tables_lead_through_every_kind_of_frame)
{
	unwind_check_frames("unwind");
}

UNIT(auto_leads_through_every_kind_of_frame)
{
	unwind_check_frames("auto");
}

UNIT(a_stack_goes_up_to_where_the_program_began)
{
	struct chain_expected expected;
	struct chain_found found;
	Dl_info outermost;

	unwind_start("unwind");
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACK_DEPTH", "64", 1) == 0);
	unwind_outer(1, &expected);
	chain_read(1, &found);
	chain_check(&found, &expected);
	assert(found.count < 64);
	/* _start() is the program's, and called by nobody. */
	assert(dladdr((void *)found.address[found.count - 1], &outermost) != 0);
	assert(strstr(outermost.dli_fname, "unwind-test"));
}

/* What libunwind has is not for the application. */
UNIT(the_application_keeps_its_backtrace)
{
	static const char *const names[] = {"unw_backtrace",     "unw_step",
					    "_ULx86_64_step",    "_Ux86_64_step",
					    "_U_dyn_info_list",  "_Ux86_64_create_addr_space",
					    "_ULx86_64_get_reg", "unw_getcontext"};
	Dl_info owner;

	unwind_start("unwind");
	assert(!unwind_is_loaded());
	unwind_checked(1);
	assert(unwind_is_loaded());
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert(!dlsym(RTLD_DEFAULT, names[i]));
	assert(dladdr(dlsym(RTLD_DEFAULT, "backtrace"), &owner) != 0);
	assert(strstr(owner.dli_fname, "libunwind") == NULL);
}

/* Nothing of this is needed, so nothing of it is loaded. */
UNIT(frame_pointers_alone_load_nothing)
{
	struct chain_expected expected = {.count = 0};

	unwind_start("fp");
	chain_middle(1, &expected);
	assert(!unwind_is_loaded());
}

/* NOLINTNEXTLINE(misc-no-recursion): that is the purpose */
static __attribute__((noinline)) void unwind_recurse(uint32_t depth,
						     struct chain_expected *expected)
{
	volatile uint8_t room[64];

	room[depth % sizeof(room)] = 1;
	if (depth > 0)
		unwind_recurse(depth - 1, expected);
	else
		unwind_bare(7, expected);
	room[depth % sizeof(room)] = 2;
}

UNIT(a_deep_recursion_keeps_the_innermost)
{
	struct chain_expected expected = {.count = 0};
	struct chain_found found;

	unwind_start("unwind");
	unwind_recurse(20000, &expected);
	chain_read(7, &found);
	assert(found.count == 16 && chain_lost() == 0);
	chain_check(&found, &expected);
	for (size_t i = 2; i < found.count; i++)
		assert(chain_is_in(found.address[i], (uintptr_t)&unwind_recurse));
}

/* Both words of the frame are overwritten while the event is reported. */
static __attribute__((noinline)) void unwind_smash(uint64_t address, uintptr_t fp, uintptr_t ip)
{
	uintptr_t *frame = __builtin_frame_address(0);
	uintptr_t right[2] = {frame[0], frame[1]};
	struct chain_expected expected = {.count = 0};

	if (fp)
		__atomic_store_n(&frame[0], fp, __ATOMIC_SEQ_CST);
	if (ip)
		__atomic_store_n(&frame[1], ip, __ATOMIC_SEQ_CST);
	unwind_bare(address, &expected);
	__atomic_store_n(&frame[0], right[0], __ATOMIC_SEQ_CST);
	__atomic_store_n(&frame[1], right[1], __ATOMIC_SEQ_CST);
}

/* A caller whose own frame is found by its frame pointer, which is wrong when it is looked at. */
static __attribute__((noinline)) void unwind_smashed(uint64_t address, uintptr_t fp, uintptr_t ip)
{
	volatile uint8_t *room = alloca(address % 64 + 16);

	room[0] = 1;
	unwind_smash(address, fp, ip);
	room[0] = 2;
}

static void unwind_check_damage(const char *how)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uintptr_t malloc_code = (uintptr_t)dlsym(RTLD_DEFAULT, "malloc");
	const uintptr_t wild[] = {1,
				  8,
				  4096,
				  here - 64,
				  here + 1,
				  here + 7,
				  UINTPTR_MAX,
				  UINTPTR_MAX - 7,
				  UINTPTR_MAX - 15,
				  (uintptr_t)&unwind_bare,
				  (uintptr_t)&unwind_bare + 20,
				  malloc_code + 9,
				  UINT64_C(0x800000000000),
				  UINT64_C(0xffff800000000000),
				  here | UINT64_C(1) << 62,
				  UINT64_C(1) << 60,
				  UINT64_C(0x2000010000000000),
				  (uintptr_t)wild};
	struct chain_found found;

	unwind_start(how);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		unwind_smashed(2 * i, wild[i], 0);
		unwind_smashed(2 * i + 1, 0, wild[i]);
		for (size_t k = 0; k < ARRAY_SIZE(wild); k++)
			unwind_smashed(1000 + i * 100 + k, wild[i], wild[k]);
		chain_read(2 * i, &found);
		assert(found.count == 0 || chain_is_in(found.address[0], (uintptr_t)&chain_leaf));
	}
	for (uintptr_t at = here; at < here + 2048; at += 8)
		unwind_smashed(100000 + at, at, at);
	/* And it works as before. */
	unwind_checked(99999);
}

UNIT(a_damaged_stack_is_survived)
{
	unwind_check_damage("unwind");
}

UNIT(a_damaged_stack_is_survived_by_auto)
{
	unwind_check_damage("auto");
}

static uint64_t unwind_handled;

static __attribute__((noinline)) void unwind_handler(int number)
{
	(void)number;
	ttmem_alloc(0, TTMEM_DRAM, 500, 64, NULL);
	unwind_handled++;
}

/* As the first event, when libunwind would have to be loaded, and later. */
static void unwind_check_handler(bool is_first, int flags)
{
	static uint8_t memory[65536] __attribute__((aligned(16)));
	const stack_t other = {.ss_sp = memory, .ss_size = sizeof(memory)};
	struct chain_found found;

	if (WITNESS_TSAN)
		unit_skip("TSan calls handlers later, from where it likes");
	unwind_start("unwind");
	if (!is_first)
		unwind_checked(1);
	assert(sigaltstack(&other, NULL) == 0);
	witness_handle(SIGUSR1, unwind_handler, flags);
	assert(raise(SIGUSR1) == 0 && unwind_handled == 1);
	chain_read(500, &found);
	assert(found.count == 0 && chain_lost() == 1);
	assert(unwind_is_loaded() == !is_first);
	unwind_checked(2);
}

UNIT(a_handler_has_none)
{
	unwind_check_handler(false, 0);
}

UNIT(a_handler_loads_nothing)
{
	unwind_check_handler(true, 0);
}

UNIT(an_alternate_stack_has_none)
{
	unwind_check_handler(false, SA_ONSTACK);
}

UNIT(an_alternate_stack_loads_nothing)
{
	unwind_check_handler(true, SA_ONSTACK);
}

static int unwind_callback(struct dl_phdr_info *info, size_t size, void *context)
{
	struct chain_expected expected = {.count = 0};

	(void)info;
	(void)size;
	unwind_bare((uint64_t)(uintptr_t)context, &expected);
	return 1;
}

UNIT(a_callback_of_the_loader_has_none)
{
	struct chain_expected expected;
	struct chain_found found = {.count = 0};
	uint64_t tries = 0;

	if (WITNESS_TSAN)
		unit_skip("TSan stands in front of dl_iterate_phdr()");
	unwind_start("unwind");
	dl_iterate_phdr(unwind_callback, (void *)500);
	assert(!unwind_is_loaded());
	/* It may take a second until what it left on the stack is known to be only that. */
	while (found.count == 0) {
		unwind_outer(1000 + tries, &expected);
		chain_read(1000 + tries++, &found);
	}
	chain_check(&found, &expected);
	dl_iterate_phdr(unwind_callback, (void *)501);
	for (uint64_t i = 500; i < 502; i++) {
		chain_read(i, &found);
		assert(found.count == 0);
	}
	assert(chain_lost() == 2 + tries - 1);
}

#define UNWIND_THREADS (WITNESS_TSAN || WITNESS_ASAN ? 200u : 1000u)
#define UNWIND_BITS 10u

struct unwind_thread {
	pthread_t thread;
	uint32_t number;
	struct chain_expected expected;
};

static pthread_barrier_t unwind_barrier;

/* Each bit of the path takes one of two calls. What follows them keeps them two. */
/* NOLINTNEXTLINE(misc-no-recursion): that is the purpose */
static __attribute__((noinline)) void unwind_path(uint32_t path, uint32_t left, uint64_t address,
						  struct chain_expected *expected)
{
	if (left == 0) {
		chain_leaf(address, expected);
	} else if (path & 1) {
		unwind_path(path >> 1, left - 1, address, expected);
		__asm__ volatile("# one");
	} else {
		unwind_path(path >> 1, left - 1, address, expected);
		__asm__ volatile("# none");
	}
	unwind_expect(expected, __builtin_return_address(0));
}

static void *unwind_thread(void *context)
{
	struct unwind_thread *self = context;

	for (uint64_t i = 0; i < 4; i++) {
		self->expected.count = 0;
		unwind_path(self->number, UNWIND_BITS, self->number + i * UNWIND_THREADS,
			    &self->expected);
	}
	(void)pthread_barrier_wait(&unwind_barrier); /* none goes before all have had theirs */
	return NULL;
}

static void unwind_check_thread(struct witness *w, const struct unwind_thread *thread,
				uint32_t *ret_id)
{
	struct chain_found found;

	*ret_id = 0;
	for (uint64_t i = 0; i < 4; i++) {
		const struct book_record *row =
			witness_row(w, TTMEM_DRAM, thread->number + i * UNWIND_THREADS);

		assert(row && row->stack && (*ret_id == 0 || *ret_id == row->stack));
		*ret_id = row->stack;
	}
	chain_read_id(w, *ret_id, &found);
	chain_check(&found, &thread->expected);
}

static void unwind_check_threads(const char *how)
{
	struct unwind_thread *threads = calloc(UNWIND_THREADS, sizeof(*threads));
	uint32_t *ids = calloc(UNWIND_THREADS, sizeof(*ids));
	pthread_attr_t attributes;
	struct witness w;

	unwind_start(how);
	/* The book is there before: who waits too long for it loses events, which is not what this is about. */
	assert(ttmem_enabled());
	assert(threads && ids && pthread_attr_init(&attributes) == 0);
	assert(pthread_attr_setstacksize(&attributes, 128 * 1024) == 0);
	assert(pthread_barrier_init(&unwind_barrier, NULL, UNWIND_THREADS) == 0);
	for (uint32_t i = 0; i < UNWIND_THREADS; i++) {
		threads[i].number = i;
		assert(pthread_create(&threads[i].thread, &attributes, unwind_thread,
				      &threads[i]) == 0);
	}
	for (uint32_t i = 0; i < UNWIND_THREADS; i++)
		assert(pthread_join(threads[i].thread, NULL) == 0);
	assert(witness_open(&w, getpid()));
	assert(witness_look(&w, 0, VIEW_LIVING));
	assert(witness_header(&w)->lost_stacks == 0);
	for (uint32_t i = 0; i < UNWIND_THREADS; i++) {
		unwind_check_thread(&w, &threads[i], &ids[i]);
		for (uint32_t k = 0; k < i; k++)
			assert(ids[k] != ids[i]);
	}
	witness_close(&w);
	(void)pthread_attr_destroy(&attributes); /* cannot fail */
	free(threads);
	free(ids);
}

UNIT(a_thousand_threads_at_once_have_a_stack_each)
{
	unwind_check_threads("unwind");
}

UNIT(a_thousand_threads_at_once_have_a_stack_each_by_auto)
{
	unwind_check_threads("auto");
}

static void *unwind_small_thread(void *context)
{
	unwind_bare(500, context);
	return NULL;
}

/* Too little stack for all that loading and asking needs. */
UNIT(a_thread_with_little_stack_is_left_alone)
{
	struct chain_expected expected = {.count = 0};
	struct chain_found found;
	pthread_attr_t attributes;
	pthread_t thread;

	if (WITNESS_ASAN || WITNESS_TSAN)
		unit_skip("sanitizers need more than little");
	unwind_start("unwind");
	assert(pthread_attr_init(&attributes) == 0);
	assert(pthread_attr_setstacksize(&attributes, 32768) == 0);
	assert(pthread_create(&thread, &attributes, unwind_small_thread, &expected) == 0);
	assert(pthread_join(thread, NULL) == 0);
	(void)pthread_attr_destroy(&attributes); /* cannot fail */
	chain_read(500, &found);
	assert(found.count == 0 && chain_lost() == 1);
	unwind_checked(1);
}

UNIT(a_forked_child_goes_on)
{
	pid_t child;

	unwind_start("unwind");
	unwind_checked(1);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		unwind_checked(2);
		assert(chain_lost() == 0);
		_exit(0);
	}
	witness_wait(child);
}

/* Many functions, so that threads have something new to learn for a while. */
#define UNWIND_ONE(n)                                                          \
	static __attribute__((noinline)) void unwind_one_##n(uint64_t address) \
	{                                                                      \
		ttmem_alloc(1, TTMEM_L1, address, 64, NULL);                   \
		__asm__ volatile("");                                          \
	}
#define UNWIND_NAME(n) unwind_one_##n,
#define UNWIND_4(X, n) X(n##0) X(n##1) X(n##2) X(n##3)
#define UNWIND_16(X, n) UNWIND_4(X, n##0) UNWIND_4(X, n##1) UNWIND_4(X, n##2) UNWIND_4(X, n##3)
#define UNWIND_64(X, n) UNWIND_16(X, n##0) UNWIND_16(X, n##1) UNWIND_16(X, n##2) UNWIND_16(X, n##3)
#define UNWIND_256(X) UNWIND_64(X, 0) UNWIND_64(X, 1) UNWIND_64(X, 2) UNWIND_64(X, 3)

UNWIND_256(UNWIND_ONE)

static void (*const unwind_many[])(uint64_t) = {UNWIND_256(UNWIND_NAME)};

static void *unwind_learner(void *context)
{
	(void)context;
	for (size_t i = 0; i < ARRAY_SIZE(unwind_many); i++)
		unwind_many[i](i * 4096);
	return NULL;
}

/* The child may have none, if the parent was in the middle of it; it may not have a wrong one or wait. */
static void unwind_forked(void)
{
	struct chain_expected expected;
	struct chain_found found;

	unwind_outer(3, &expected);
	chain_read(3, &found);
	if (found.count > 0)
		chain_check(&found, &expected);
	assert(chain_lost() == (found.count == 0));
	_exit(0);
}

static void unwind_fork_meanwhile(void)
{
	pid_t children[8];
	pthread_t thread;

	unwind_start("unwind");
	assert(pthread_create(&thread, NULL, unwind_learner, NULL) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(children); i++) {
		children[i] = fork();
		assert(children[i] >= 0);
		if (children[i] == 0)
			unwind_forked();
	}
	for (size_t i = 0; i < ARRAY_SIZE(children); i++)
		witness_wait(children[i]);
	assert(pthread_join(thread, NULL) == 0);
	_exit(0);
}

UNIT(forking_while_another_thread_learns)
{
	unwind_need();
	for (int i = 0; i < 10; i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0)
			unwind_fork_meanwhile();
		witness_wait(child);
	}
}
