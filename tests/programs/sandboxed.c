/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program that forbids itself things and reports buffers: sandboxed WHEN WHAT.
 *
 * WHEN: before the first event; frozen: after ttmem_freeze(); child: in a forked child, before its first
 * event; exec: in a program that this one has become. WHAT: strict, filter (everything but what strict
 * allows, and exec), memfd (memfd_create() alone), tsc, tsc-filter, nothing.
 *
 * Writes "ready" when it has reported, and ends at the end of its input.
 */

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#define LIVE 3000u
#define SIZE 64u

#define ALLOW(name)                                            \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void check(int is_true, const char *what)
{
	if (is_true)
		return;
	perror(what);
	_exit(1);
}

static void install(struct sock_filter *code, size_t count)
{
	struct sock_fprog program = {.len = (unsigned short)count, .filter = code};

	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
	check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "filter");
}

static void forbid_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(read),
		ALLOW(write),
		ALLOW(exit),
		ALLOW(exit_group),
		ALLOW(rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	install(code, sizeof(code) / sizeof(code[0]));
}

static void forbid_memfd(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	install(code, sizeof(code) / sizeof(code[0]));
}

/* As systemd's "SystemCallFilter=~@debug" would, and more: nothing that an ordinary program needs. */
static void forbid_rare(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	install(code, sizeof(code) / sizeof(code[0]));
}

static void forbid(const char *what)
{
	if (strcmp(what, "tsc") == 0 || strcmp(what, "tsc-filter") == 0)
		check(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0, "tsc");
	if (strcmp(what, "filter") == 0 || strcmp(what, "tsc-filter") == 0)
		forbid_calls();
	if (strcmp(what, "memfd") == 0)
		forbid_memfd();
	if (strcmp(what, "rare") == 0)
		forbid_rare();
	if (strcmp(what, "strict") == 0)
		check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, "strict");
}

/* Every kind of call; LIVE buffers stay on device 0, one on device 1. */
static void report(void)
{
	const struct ttmem_alloc_args owned = {
		.struct_size = sizeof(owned),
		.device = 1,
		.type = TTMEM_L1,
		.address = 0x2000,
		.size = SIZE,
		.owner = 5,
	};
	struct ttmem_stats stats;

	ttmem_phase_push("sandboxed");
	for (uint64_t i = 0; i < 20 * LIVE; i++) {
		ttmem_alloc(0, TTMEM_DRAM, i * SIZE, SIZE, i % 2 ? "odd" : "even");
		if (i >= LIVE)
			ttmem_free(0, TTMEM_DRAM, (i - LIVE) * SIZE);
	}
	ttmem_alloc(1, TTMEM_L1, 0x1000, SIZE, NULL);
	ttmem_free(1, TTMEM_L1, 0x9999);
	/* Owners need memory, which there may be none of: then only the second free finds it. */
	ttmem_alloc_ex(&owned);
	ttmem_free_all(1, TTMEM_L1, owned.owner);
	ttmem_free(1, TTMEM_L1, owned.address);
	ttmem_free(0, TTMEM_DRAM, (19 * LIVE - 1) * SIZE);
	ttmem_alloc_failed(0, TTMEM_DRAM, 1 << 30, 5);
	ttmem_mark("done");
	ttmem_phase_process("later");
	ttmem_pause();
	ttmem_resume();
	ttmem_reset_peak(0, TTMEM_ANY);
	(void)ttmem_stats(0, TTMEM_DRAM, &stats);
	ttmem_phase_pop();
}

static void freeze_first(void)
{
	const struct ttmem_device_args device = {.struct_size = sizeof(device), .device = 1};

	ttmem_alloc(0, TTMEM_DRAM, 0, SIZE, "first");
	ttmem_free(0, TTMEM_DRAM, 0);
	ttmem_device(&device);
	check(ttmem_freeze(LIVE + 1) == 0, "freeze");
}

static int finish(void)
{
	char byte;

	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		syscall(SYS_exit, 1);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	ttmem_goodbye();
	/* Not exit_group(), which strict mode kills. */
	syscall(SYS_exit, 0);
	return 0;
}

static int wait_for_child(pid_t child)
{
	int status;

	check(waitpid(child, &status, 0) == child, "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	const char *when = argc > 2 ? argv[1] : "before", *what = argc > 2 ? argv[2] : "nothing";

	if (strcmp(when, "frozen") == 0)
		freeze_first();
	if (strcmp(when, "child") == 0) {
		pid_t child;

		ttmem_alloc(0, TTMEM_DRAM, 0x77, 77, "parent");
		child = fork();
		if (child != 0)
			return wait_for_child(child);
	}
	forbid(what);
	if (strcmp(when, "exec") == 0) {
		execl(argv[0], argv[0], NULL);
		return 1;
	}
	report();
	return finish();
}
