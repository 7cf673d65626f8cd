/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The order matters: changing user and groups needs capabilities, so these are dropped afterwards;
 * the system call filter comes last, because it forbids all of the above.
 */

#include "symbol/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"

#if defined(__x86_64__)
#define JAIL_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define JAIL_ARCH AUDIT_ARCH_AARCH64
#else
#error "say which system calls this machine has"
#endif

/* Sanitizers map terabytes that they never touch. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define JAIL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define JAIL_SANITIZED 1
#endif
#endif
#ifndef JAIL_SANITIZED
#define JAIL_SANITIZED 0
#endif

#define JAIL_FILES 16u

/*
 * All that is needed to read given files, use memory and talk on the socket. The C library calls
 * newfstatat to get the size of a descriptor; it also gives the size of a file by name, which is
 * harmless.
 */
static const uint32_t jail_calls[] = {
	SYS_read,      SYS_pread64,      SYS_lseek,         SYS_fstat,           SYS_newfstatat,
	SYS_munmap,    SYS_mremap,       SYS_brk,           SYS_madvise,         SYS_close,
	SYS_recvmsg,   SYS_sendmsg,      SYS_exit,          SYS_exit_group,      SYS_futex,
	SYS_getrandom, SYS_rt_sigreturn, SYS_clock_gettime, SYS_restart_syscall,
};

/* Allowed unless they make memory executable. */
static const uint32_t jail_maps[] = {SYS_mmap, SYS_mprotect};

#define JAIL_LOAD(member)                                       \
	(struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
				      (uint32_t)offsetof(struct seccomp_data, member))
#define JAIL_UNLESS(value, skip) \
	(struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define JAIL_RETURN(action) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, action)

#define JAIL_REFUSE (SECCOMP_RET_ERRNO | EPERM)

static int jail_filter(void)
{
	struct sock_filter code[5 + 2 * ARRAY_SIZE(jail_calls) + 5 * ARRAY_SIZE(jail_maps)];
	struct sock_fprog program = {.filter = code};
	unsigned short n = 0;

	code[n++] = JAIL_LOAD(arch);
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, JAIL_ARCH, 1, 0);
	code[n++] = JAIL_RETURN(SECCOMP_RET_KILL_PROCESS);
	code[n++] = JAIL_LOAD(nr);
	for (size_t i = 0; i < ARRAY_SIZE(jail_calls); i++) {
		code[n++] = JAIL_UNLESS(jail_calls[i], 1);
		code[n++] = JAIL_RETURN(SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < ARRAY_SIZE(jail_maps); i++) {
		code[n++] = JAIL_UNLESS(jail_maps[i], 4);
		code[n++] = JAIL_LOAD(args[2]); /* the lower half, on both architectures */
		code[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
		code[n++] = JAIL_RETURN(SECCOMP_RET_ALLOW);
		code[n++] = JAIL_RETURN(JAIL_REFUSE);
	}
	code[n++] = JAIL_RETURN(JAIL_REFUSE);
	program.len = n;
	/* With prctl(), which a service's own filter is certain to allow. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -errno : 0;
}

static int jail_limit(int what, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)what, &limit) < 0)
		return -errno;
	limit.rlim_max = bits_min(limit.rlim_max, most);
	limit.rlim_cur = bits_min(limit.rlim_cur, limit.rlim_max);
	return setrlimit((__rlimit_resource_t)what, &limit) < 0 ? -errno : 0;
}

static int jail_limits(void)
{
	int r = jail_limit(RLIMIT_CORE, 0);

	if (r == 0)
		r = jail_limit(RLIMIT_FSIZE, 0);
	if (r == 0)
		r = jail_limit(RLIMIT_NOFILE, JAIL_FILES);
	if (r == 0)
		r = jail_limit(RLIMIT_CPU, JAIL_SECONDS);
	if (r == 0 && !JAIL_SANITIZED)
		r = jail_limit(RLIMIT_AS, JAIL_MEMORY);
	return r;
}

/*
 * Root becomes nobody. In a user namespace without that user we stay root: without capabilities and
 * behind the filter, root can do little.
 */
static int jail_user(void)
{
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 && errno != EPERM)
		return -errno;
	if (setresgid(JAIL_USER, JAIL_USER, JAIL_USER) < 0 ||
	    setresuid(JAIL_USER, JAIL_USER, JAIL_USER) < 0)
		return errno == EINVAL || errno == EPERM ? 0 : -errno;
	return 0;
}

static int jail_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

	/* Fails on kernels before 4.3, which have no ambient capabilities. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	/* Other processes of the same user may not trace us, and we do not outlive the daemon. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

int jail_enter(void)
{
	int r = jail_limits();

	if (r == 0)
		r = jail_user();
	if (r == 0)
		r = jail_capabilities();
	return r < 0 ? r : jail_filter();
}

static bool jail_refused(long result)
{
	return result < 0 && errno == EPERM;
}

uint32_t jail_probe(void)
{
	const int readable = PROT_READ | PROT_EXEC;
	const int private = MAP_PRIVATE | MAP_ANONYMOUS;
	const bool refused[] = {
		jail_refused(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_CLOEXEC, 0)),
		jail_refused(syscall(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)),
		jail_refused(syscall(SYS_execve, "", NULL, NULL)),
		/*
		 * Invalid flags: if clone is allowed, it fails with another error and creates no
		 * process.
		 */
		jail_refused(syscall(SYS_clone, CLONE_SIGHAND, 0, 0, 0, 0)),
		jail_refused(syscall(SYS_kill, 0, 0)),
		jail_refused(syscall(SYS_ptrace, PTRACE_PEEKTEXT, 0, 0, 0)),
		jail_refused(syscall(SYS_mmap, NULL, 4096, readable, private, -1, 0)),
		jail_refused(syscall(SYS_mprotect, NULL, 4096, readable)),
		jail_refused(syscall(SYS_setuid, 0)),
		jail_refused(syscall(SYS_write, STDERR_FILENO, "", 0)),
	};
	uint32_t allowed = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(refused); i++)
		allowed |= (uint32_t)!refused[i] << i;
	return allowed;
}
