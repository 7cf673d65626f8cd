/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks by unwind tables, as another process reads them from the book: through code without frame
 * pointers, on damaged stacks, by many threads and in forked children. The library is the real one.
 */

#include <ttmem/ttmem.h>

#include <alloca.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

/* One function, not cloned: a clone is elsewhere, and is what gcc 11 calls. */
#ifdef __clang__
#define UNWIND_ONCE __attribute__((noinline))
#else
#define UNWIND_ONCE __attribute__((noinline, noclone))
#endif

static void unwind_check_frames(const char *how)
{
	calls_start_tables(how);
	for (uint64_t i = 0; i < 100; i++)
		calls_checked(i);
	assert(calls_lost() == 0);
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
	struct calls_expected expected;
	struct calls_found found;
	Dl_info outermost;

	calls_start_tables("unwind");
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads */
	assert(setenv("TTMEM_STACK_DEPTH", "64", 1) == 0);
	calls_outer(1, &expected);
	calls_read(1, &found);
	calls_check(&found, &expected);
	assert(found.count < 64);
	/* _start() belongs to the program and has no caller. */
	assert(dladdr((void *)found.address[found.count - 1], &outermost) != 0);
	assert(strstr(outermost.dli_fname, "lib-unwind"));
}

/* Mappings of libraries. */
static unsigned int unwind_libraries(void)
{
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int count = 0;

	assert(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, ".so") != NULL;
	assert(fclose(maps) == 0);
	return count;
}

static nlink_t unwind_threads(void)
{
	struct stat folder;

	assert(stat("/proc/self/task", &folder) == 0);
	return folder.st_nlink;
}

UNIT(the_application_gets_no_library_and_no_thread)
{
	unsigned int libraries;
	nlink_t threads;

	calls_start_tables("unwind");
	libraries = unwind_libraries();
	threads = unwind_threads();
	calls_checked(1);
	assert(unwind_libraries() == libraries && unwind_threads() == threads);
}

/* NOLINTNEXTLINE(misc-no-recursion): that is the purpose */
static __attribute__((noinline)) void unwind_recurse(uint32_t depth,
						     struct calls_expected *expected)
{
	volatile uint8_t room[64];

	room[depth % sizeof(room)] = 1;
	if (depth > 0)
		unwind_recurse(depth - 1, expected);
	else
		calls_bare(7, expected);
	room[depth % sizeof(room)] = 2;
}

UNIT(a_deep_recursion_keeps_the_innermost)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	calls_start_tables("unwind");
	unwind_recurse(20000, &expected);
	calls_read(7, &found);
	assert(found.count == 16 && calls_lost() == 0);
	calls_check(&found, &expected);
	for (size_t i = 2; i < found.count; i++)
		assert(calls_is_in(found.address[i], (uintptr_t)&unwind_recurse));
}

/* Overwrites both words of the frame while the event is reported. */
static __attribute__((noinline)) void unwind_smash(uint64_t address, uintptr_t fp, uintptr_t ip)
{
	uintptr_t *frame = __builtin_frame_address(0);
	uintptr_t right[2] = {frame[0], frame[1]};
	struct calls_expected expected = {.count = 0};

	if (fp)
		__atomic_store_n(&frame[0], fp, __ATOMIC_SEQ_CST);
	if (ip)
		__atomic_store_n(&frame[1], ip, __ATOMIC_SEQ_CST);
	calls_bare(address, &expected);
	__atomic_store_n(&frame[0], right[0], __ATOMIC_SEQ_CST);
	__atomic_store_n(&frame[1], right[1], __ATOMIC_SEQ_CST);
}

/* A caller whose frame is found through its frame pointer, which is corrupt at that time. */
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
				  (uintptr_t)&calls_bare,
				  (uintptr_t)&calls_bare + 20,
				  malloc_code + 9,
				  UINT64_C(0x800000000000),
				  UINT64_C(0xffff800000000000),
				  here | UINT64_C(1) << 62,
				  UINT64_C(1) << 60,
				  UINT64_C(0x2000010000000000),
				  (uintptr_t)wild};
	struct calls_found found;

	calls_start_tables(how);
	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		unwind_smashed(2 * i, wild[i], 0);
		unwind_smashed(2 * i + 1, 0, wild[i]);
		for (size_t k = 0; k < ARRAY_SIZE(wild); k++)
			unwind_smashed(1000 + i * 100 + k, wild[i], wild[k]);
		calls_read(2 * i, &found);
		assert(found.count == 0 || calls_is_in(found.address[0], (uintptr_t)&calls_leaf));
	}
	for (uintptr_t at = here; at < here + 2048; at += 8)
		unwind_smashed(100000 + at, at, at);
	/* Afterwards everything works as before. */
	calls_checked(99999);
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
static uint32_t unwind_is_spinning;

static __attribute__((noinline)) void unwind_handler(int number)
{
	struct calls_expected expected = {.count = 0};

	(void)number;
	calls_bare(500, &expected);
	unwind_handled++;
}

/*
 * As libc does it, but the handler returns to our own code: qemu's is in no file. Handlers of other
 * programs may do the same.
 */
void unwind_restorer(void);
#if defined(__x86_64__)
__asm__(".text\nunwind_restorer:\n\tmovq $15, %rax\n\tsyscall");
#else
__asm__(".text\nunwind_restorer:\n\tmov x8, #139\n\tsvc #0");
#endif

#define UNWIND_SA_RESTORER 0x04000000ul

static void unwind_handle_directly(int flags)
{
	struct {
		void (*handler)(int number);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = {unwind_handler, (unsigned long)flags | UNWIND_SA_RESTORER, unwind_restorer, 0};

	assert(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof(action.mask)) == 0);
}

static void unwind_handle(int flags)
{
	observer_handle(SIGUSR1, unwind_handler, flags);
}

/* A leaf function without a frame, to be interrupted anywhere in its loop. */
static __attribute__((noinline)) uint64_t unwind_spin(void)
{
	uint64_t turns = 0;

	__atomic_store_n(&unwind_is_spinning, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&unwind_handled, __ATOMIC_RELAXED))
		turns++;
	return turns;
}

static __attribute__((noinline)) void unwind_wait(void)
{
	volatile uint64_t turns[25]; /* a frame of some size */

	turns[0] = unwind_spin();
	(void)turns[0];
}

static void unwind_check_handler(bool is_first, int flags, void (*handle)(int flags));

/* The handler's frames, then the interrupted function and its callers. */
static void unwind_check_handled(const struct calls_found *found)
{
	assert(found->count > 6);
	assert(calls_is_in(found->address[0], (uintptr_t)&calls_leaf));
	assert(calls_is_in(found->address[1], (uintptr_t)&calls_bare));
	assert(calls_is_in(found->address[2], (uintptr_t)&unwind_handler));
	assert(calls_is_in(found->address[3], (uintptr_t)&unwind_spin));
	assert(calls_is_in(found->address[4], (uintptr_t)&unwind_wait));
	assert(calls_is_in(found->address[5], (uintptr_t)&unwind_check_handler));
}

static void *unwind_interrupts(void *context)
{
	while (!__atomic_load_n(&unwind_is_spinning, __ATOMIC_ACQUIRE))
		sched_yield();
	assert(pthread_kill(*(const pthread_t *)context, SIGUSR1) == 0);
	return NULL;
}

static UNWIND_ONCE void unwind_check_handler(bool is_first, int flags, void (*handle)(int flags))
{
	static uint8_t memory[65536] __attribute__((aligned(16)));
	const stack_t other = {.ss_sp = memory, .ss_size = sizeof(memory)};
	pthread_t self = pthread_self();
	struct calls_found found;
	pthread_t thread;

	if (OBSERVER_TSAN)
		unit_skip("TSan calls handlers later, from where it likes");
	calls_start_tables("auto");
	if (!is_first)
		calls_checked(1);
	assert(sigaltstack(&other, NULL) == 0);
	handle(flags);
	assert(pthread_create(&thread, NULL, unwind_interrupts, &self) == 0);
	unwind_wait();
	assert(pthread_join(thread, NULL) == 0 && unwind_handled == 1);
	calls_read(500, &found);
	assert(calls_lost() == 0);
	unwind_check_handled(&found);
	calls_checked(2);
}

/* Only where the kernel, not qemu, calls handlers. */
static void unwind_need_kernel(void)
{
	if (getauxval(AT_SYSINFO_EHDR) == 0)
		unit_skip("not on a kernel of its own");
}

UNIT(a_handler_has_the_stack_of_what_it_interrupted)
{
	unwind_need_kernel();
	unwind_check_handler(false, 0, unwind_handle);
}

UNIT(a_handler_has_one_as_the_first)
{
	unwind_need_kernel();
	unwind_check_handler(true, 0, unwind_handle);
}

UNIT(a_handler_that_returns_by_other_code_has_one)
{
	unwind_check_handler(false, 0, unwind_handle_directly);
}

UNIT(an_alternate_stack_leads_to_the_threads_own)
{
	unwind_need_kernel();
	unwind_check_handler(false, SA_ONSTACK, unwind_handle);
}

UNIT(an_alternate_stack_has_one_as_the_first)
{
	unwind_check_handler(true, SA_ONSTACK, unwind_handle_directly);
}

static int unwind_callback(struct dl_phdr_info *info, size_t size, void *context)
{
	struct calls_expected expected = {.count = 0};

	(void)info;
	(void)size;
	calls_bare((uint64_t)(uintptr_t)context, &expected);
	return 1;
}

UNIT(a_callback_of_the_loader_has_one)
{
	struct calls_found found;

	if (OBSERVER_TSAN)
		unit_skip("TSan stands in front of dl_iterate_phdr()");
	calls_start_tables("unwind");
	dl_iterate_phdr(unwind_callback, (void *)500);
	calls_checked(1);
	dl_iterate_phdr(unwind_callback, (void *)501);
	for (uint64_t i = 500; i < 502; i++) {
		calls_read(i, &found);
		assert(found.count > 3 &&
		       calls_is_in(found.address[2], (uintptr_t)&unwind_callback));
	}
	assert(calls_lost() == 0);
}

static void *unwind_small_thread(void *context)
{
	calls_bare(500, context);
	return NULL;
}

UNIT(a_thread_with_little_stack_has_one)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;
	pthread_attr_t attributes;
	pthread_t thread;

	if (OBSERVER_ASAN || OBSERVER_TSAN)
		unit_skip("sanitizers need more than little");
	calls_start_tables("unwind");
	assert(pthread_attr_init(&attributes) == 0);
	assert(pthread_attr_setstacksize(&attributes, bits_max(32768, (size_t)PTHREAD_STACK_MIN)) ==
	       0);
	assert(pthread_create(&thread, &attributes, unwind_small_thread, &expected) == 0);
	assert(pthread_join(thread, NULL) == 0);
	(void)pthread_attr_destroy(&attributes); /* cannot fail */
	calls_read(500, &found);
	calls_check(&found, &expected);
	assert(calls_lost() == 0);
	calls_checked(1);
}

#if defined(__aarch64__)

/* Return addresses on the stack are signed. Return: whether this processor does that. */
static __attribute__((noinline, target("branch-protection=pac-ret+leaf"))) bool
unwind_signed(uint64_t address, struct calls_expected *expected)
{
	const volatile uintptr_t *frame = __builtin_frame_address(0);
	bool is_signed;

	calls_bare(address, expected);
	is_signed = frame[1] != (uintptr_t)__builtin_return_address(0);
	calls_expect(expected, __builtin_return_address(0));
	return is_signed;
}

static void unwind_check_signed(const char *how)
{
	struct calls_expected expected = {.count = 0};
	struct calls_found found;

	calls_start_tables(how);
	if (!unwind_signed(1, &expected))
		unit_skip("no pointer authentication");
	assert(expected.count == 3);
	calls_read(1, &found);
	calls_check(&found, &expected);
	assert(calls_lost() == 0);
}

UNIT(signed_return_addresses_are_stripped_by_tables)
{
	unwind_check_signed("unwind");
}

UNIT(signed_return_addresses_are_stripped_by_frame_pointers)
{
	unwind_check_signed("fp");
}

#endif
