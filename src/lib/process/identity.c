/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the process's identity from /proc, whatever the application has done to libc. */

#include "lib/process/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "base/files/small-file.h"
#include "base/process/time-offsets.h"

#define IDENTITY_TEXT(x) #x
#define IDENTITY_VERSION(major, minor, patch) \
	IDENTITY_TEXT(major) "." IDENTITY_TEXT(minor) "." IDENTITY_TEXT(patch)

/*
 * The thread id that libc has for this thread; 0 = unknown. libc does not export it, but a thread's
 * CPU clock id contains it, inverted, above bits that give the kind of clock.
 */
static pid_t identity_thread(void)
{
	clockid_t clock;

	return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? ~(clock >> 3) : 0;
}

bool identity_is_borrowed(void)
{
	int saved_errno = errno;
	pid_t thread = identity_thread(), me = gettid();
	/* libc keeps the id of the thread that first had this memory, which clone() may copy. */
	bool is_borrowed =
		thread > 0 && thread != me && syscall(SYS_kcmp, me, thread, KCMP_VM, 0, 0) == 0;

	errno = saved_errno;
	return is_borrowed;
}

/* Behind the name, which may contain anything, come state (field 3) and then numbers. */
static uint64_t identity_field(const char *stat_line, int number)
{
	const char *p = strrchr(stat_line, ')');

	for (int field = 2; p && field < number; field++) {
		p = strchr(p, ' ');
		if (p)
			p++;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

uint64_t identity_start_ticks(const char *stat_line)
{
	return identity_field(stat_line, 22);
}

static int identity_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* "d3b07384-d9a0-4c9b-8f3a-0c6b1f2e4a5d" as 16 bytes. */
static void identity_boot_id(uint8_t boot_id[16])
{
	char text[64];
	size_t digits = 0;

	(void)small_file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof(text));
	for (size_t i = 0; text[i] && digits < 32; i++) {
		int digit = identity_hex(text[i]);

		if (digit < 0)
			continue;
		boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | digit);
		digits++;
	}
}

/* The name between the parentheses of /proc/PID/stat: the process's, not this thread's. */
static void identity_comm(const char *stat_line, char comm[16])
{
	const char *begin = strchr(stat_line, '(');
	const char *end = strrchr(stat_line, ')');

	if (begin && end > begin)
		memcpy(comm, begin + 1, bits_min((uint64_t)(end - begin - 1), 15));
}

/*
 * Fields 48 and 49 give the address of the command line. The kernel copies it, because an
 * application may have unmapped it; where that is forbidden, /proc is read.
 */
static size_t identity_cmdline(const char *stat_line, pid_t pid, char cmdline[IDENTITY_CMDLINE])
{
	uint64_t begin = identity_field(stat_line, 48);
	uint64_t end = identity_field(stat_line, 49);
	size_t length = begin < end ? bits_min(end - begin, IDENTITY_CMDLINE) : 0;
	struct iovec from = {.iov_base = (void *)(uintptr_t)begin, .iov_len = length};
	struct iovec to = {.iov_base = cmdline, .iov_len = length};
	ssize_t read;

	if (length && process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)length)
		return length;
	read = small_file_read(AT_FDCWD, "/proc/self/cmdline", cmdline, IDENTITY_CMDLINE);
	return read > 0 ? (size_t)read : 0;
}

void identity_read(struct writer_identity *ret_identity, char cmdline[IDENTITY_CMDLINE])
{
	static char line[1024]; /* not on the stack, which may be a signal handler's small one */
	const char *unlisted = secure_getenv("TTMEM_UNLISTED");
	struct time_offsets offsets;
	uid_t uid, euid, suid;
	struct stat st;

	*ret_identity = (struct writer_identity){
		.pid = (uint32_t)getpid(),
		.source = BOOK_SOURCE_LIBRARY,
		.library = IDENTITY_VERSION(TTMEM_VERSION_MAJOR, TTMEM_VERSION_MINOR,
					    TTMEM_VERSION_PATCH),
		.cmdline = cmdline,
		.is_unlisted = unlisted && strcmp(unlisted, "1") == 0,
	};
	(void)getresuid(&uid, &euid, &suid); /* fails only for bad pointers */
	ret_identity->uid = uid;
	ret_identity->euid = euid;
	(void)small_file_read(AT_FDCWD, "/proc/self/stat", line,
			      sizeof(line)); /* else it is empty */
	ret_identity->start_ticks = identity_start_ticks(line);
	time_offsets_own(&offsets);
	ret_identity->boottime_offset = offsets.boottime_ns;
	ret_identity->monotonic_offset = offsets.monotonic_ns;
	identity_comm(line, ret_identity->comm);
	ret_identity->cmdline_length = identity_cmdline(line, (pid_t)ret_identity->pid, cmdline);
	if (stat("/proc/self/ns/pid", &st) == 0)
		ret_identity->pid_namespace = st.st_ino;
	identity_boot_id(ret_identity->boot_id);
}
