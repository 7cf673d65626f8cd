/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What unwinding must survive: code without tables, saved registers that are garbage, and stacks
 * without room. It then has the frames up to there, and says so.
 */

#include <ttmem/ttmem.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-calls.h"
#include "lib/testing/testing-observer.h"

/* Calls its argument from code that no file contains. */
#if defined(__x86_64__)
static const uint8_t harm_code[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};
#define HARM_SP(context) ((context)->uc_mcontext.gregs[REG_RSP])
#define HARM_FP(context) ((context)->uc_mcontext.gregs[REG_RBP])
#define HARM_IP(context) ((context)->uc_mcontext.gregs[REG_RIP])
#else
static const uint32_t harm_code[] = {0xa9bf7bfd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#define HARM_SP(context) ((context)->uc_mcontext.sp)
#define HARM_FP(context) ((context)->uc_mcontext.regs[29])
#define HARM_IP(context) ((context)->uc_mcontext.pc)
#endif

static __attribute__((noinline)) void harm_called_back(void)
{
	struct calls_expected expected = {.count = 0};

	calls_bare(1, &expected);
}

/* Return: the code, ready to be called. */
static void *harm_generate(void)
{
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert(code != MAP_FAILED);
	memcpy(code, harm_code, sizeof(harm_code));
	assert(mprotect(code, 4096, PROT_READ | PROT_EXEC) == 0);
	__builtin___clear_cache(code, (char *)code + sizeof(harm_code));
	return code;
}

static void harm_check_generated(const char *how)
{
	void *code = harm_generate();
	void (*call)(void (*back)(void));
	struct calls_found found;

	memcpy(&call, &code, sizeof(call)); /* C has no cast to a function pointer */
	calls_start_tables(how);
	for (int i = 0; i < 3; i++) {
		call(harm_called_back);
		calls_read(1, &found);
		assert(found.count == 3 && found.is_cut);
		assert(calls_is_in(found.address[2], (uintptr_t)&harm_called_back));
		ttmem_free(0, TTMEM_DRAM, 1);
	}
	assert(calls_lost() == 0);
	/* Not so a stack that goes all the way, nor one that the depth limits. */
	calls_checked(2);
	calls_read(2, &found);
	assert(!found.is_cut);
	assert(munmap(code, 4096) == 0);
}

UNIT(generated_code_ends_a_stack_and_that_is_said)
{
	harm_check_generated("auto");
}

UNIT(generated_code_ends_a_stack_by_tables)
{
	harm_check_generated("unwind");
}

static void harm_need_kernel(void)
{
	if (getauxval(AT_SYSINFO_EHDR) == 0)
		unit_skip("not on a kernel of its own");
}

static uint64_t harm_handled;

#define HARM_PAGE 65536u /* the largest there is */

/* Data that the program makes inaccessible. */
static uint8_t *harm_closed(void)
{
	static uint8_t memory[2 * HARM_PAGE];

	return memory + (-(uintptr_t)memory & (HARM_PAGE - 1));
}

static uintptr_t harm_wild(size_t i)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	const uintptr_t wild[] = {
		0,
		8,
		here - 4096,
		here - (UINT64_C(100) << 20),
		here + 1,
		here + (UINT64_C(1) << 20),
		UINTPTR_MAX - 7,
		UINT64_C(1) << 47,
		(uintptr_t)&harm_handled,
		(uintptr_t)harm_closed() + 1024,
		(uintptr_t)&harm_called_back,
	};

	return i < ARRAY_SIZE(wild) ? wild[i] : UINTPTR_MAX;
}

/* What the kernel has saved is the program's memory, and may be anything. */
static void harm_handler(int number, siginfo_t *info, void *context)
{
	ucontext_t *saved = context;
	const ucontext_t right = *saved;

	(void)number;
	(void)info;
	for (size_t i = 0; harm_wild(i) != UINTPTR_MAX; i++) {
		for (size_t k = 0; k < 8; k++) {
			if (k & 1)
				HARM_SP(saved) = (__typeof__(HARM_SP(saved)))harm_wild(i);
			if (k & 2)
				HARM_FP(saved) = (__typeof__(HARM_FP(saved)))harm_wild(i);
			if (k & 4)
				HARM_IP(saved) = (__typeof__(HARM_IP(saved)))harm_wild(i);
			compiler_barrier();
			ttmem_alloc(0, TTMEM_DRAM, 1000 + 8 * i + k, 64, NULL);
			compiler_barrier();
			*saved = right;
		}
	}
	harm_handled++;
}

static void harm_check_context(int flags)
{
	static uint8_t memory[65536] __attribute__((aligned(16)));
	const stack_t other = {.ss_sp = memory, .ss_size = sizeof(memory)};
	struct sigaction action = {.sa_flags = SA_SIGINFO | flags};

	if (OBSERVER_TSAN)
		unit_skip("TSan calls handlers later, from where it likes");
	harm_need_kernel();
	calls_start_tables("auto");
	calls_checked(1);
	action.sa_sigaction = harm_handler;
	assert(sigaltstack(&other, NULL) == 0);
	assert(sigaction(SIGUSR1, &action, NULL) == 0);
	assert(mprotect(harm_closed(), HARM_PAGE, PROT_NONE) == 0);
	assert(raise(SIGUSR1) == 0 && harm_handled == 1);
	assert(mprotect(harm_closed(), HARM_PAGE, PROT_READ | PROT_WRITE) == 0);
	/* Afterwards everything works as before. */
	calls_checked(2);
}

UNIT(a_damaged_context_is_survived)
{
	harm_check_context(0);
}

UNIT(a_damaged_context_is_survived_on_an_alternate_stack)
{
	harm_check_context(SA_ONSTACK);
}

/* Where the mapping ends that this thread's stack is in. */
static uintptr_t harm_end_of_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0), from = 0, to = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	assert(maps);
	while (!(from <= here && here < to)) {
		assert(fgets(line, sizeof(line), maps));
		(void)sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to); /* every line has them */
	}
	assert(fclose(maps) == 0);
	return to;
}

/* As if a signal had come while only the last bytes of the stack were in use. */
static void harm_at_the_end(int number, siginfo_t *info, void *context)
{
	ucontext_t *saved = context;
	const ucontext_t right = *saved;

	(void)number;
	(void)info;
	HARM_SP(saved) = (__typeof__(HARM_SP(saved)))(harm_end_of_stack() - 64);
	/* What was interrupted is then taken for the return from another handler. */
	HARM_IP(saved) = (__typeof__(HARM_IP(saved)))((uintptr_t)__builtin_return_address(0) - 1);
	compiler_barrier();
	ttmem_alloc(0, TTMEM_DRAM, 2000, 64, NULL);
	compiler_barrier();
	*saved = right;
	harm_handled++;
}

UNIT(a_context_for_which_the_stack_has_no_room_is_not_read)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = harm_at_the_end};
	struct calls_found found;

	if (OBSERVER_TSAN)
		unit_skip("TSan calls handlers later, from where it likes");
	harm_need_kernel();
	calls_start_tables("auto");
	assert(sigaction(SIGUSR1, &action, NULL) == 0);
	assert(raise(SIGUSR1) == 0 && harm_handled == 1);
	calls_read(2000, &found);
	assert(found.count == 1 && found.is_cut);
	calls_checked(2);
}

static void harm_small(int number)
{
	(void)number;
	ttmem_alloc(0, TTMEM_DRAM, 500, 64, NULL);
	harm_handled++;
}

/* As small as programs make them: enough for an event, but not for a new stack. */
UNIT(a_small_alternate_stack_has_none_and_does_not_overflow)
{
	static uint8_t memory[65536] __attribute__((aligned(16)));
	size_t size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 8192;
	stack_t other = {.ss_sp = memory + sizeof(memory) - size, .ss_size = size};
	struct calls_found found;

	if (OBSERVER_ASAN || OBSERVER_TSAN)
		unit_skip("sanitizers need more than little");
	harm_need_kernel(); /* qemu's frames are larger than it says */
	calls_start_tables("auto");
	calls_checked(1);
	memset(memory, 0xa5, sizeof(memory));
	assert(sigaltstack(&other, NULL) == 0);
	observer_handle(SIGUSR1, harm_small, SA_ONSTACK);
	assert(raise(SIGUSR1) == 0 && harm_handled == 1);
	for (size_t i = 0; i < sizeof(memory) - size; i++)
		assert(memory[i] == 0xa5);
	calls_read(500, &found);
	assert(found.count == 0 && calls_lost() == 1);
}
