/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Applications that close every descriptor and reuse the numbers. The application is a child that
 * reports its progress in shared memory; the test holds its book.
 */

#include <ttmem/ttmem.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "lib/testing/testing-observer.h"

#define DESCRIPTOR_MANY 100000u

static uint32_t *descriptor_step;

static void descriptor_begin(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert(page != MAP_FAILED);
	descriptor_step = page;
	observer_track();
	unit_expect_fds(0);
}

static void descriptor_reach(uint32_t step)
{
	__atomic_store_n(descriptor_step, step, __ATOMIC_RELEASE);
}

static void descriptor_await(uint32_t step)
{
	for (int i = 0; i < 30000; i++) {
		if (__atomic_load_n(descriptor_step, __ATOMIC_ACQUIRE) >= step)
			return;
		usleep(1000);
	}
	printf("the other side is gone\n");
	abort();
}

/* The descriptor of this process's book; -1 if it is closed. */
static int descriptor_of_book(void)
{
	char path[64], target[64];

	for (int fd = 0; fd < 2048; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0)
			target[n] = '\0';
		if (n > 0 && observer_is_book(target))
			return fd;
	}
	return -1;
}

/* Opens a file of the application at the same number. */
static void descriptor_take_number(int fd, const char *name)
{
	char path[256];
	int file;

	snprintf(path, sizeof(path), "%s/%s", unit_dir(), name);
	file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert(file >= 0 && write(file, "mine", 4) == 4);
	assert(dup2(file, fd) == fd);
}

static void descriptor_check_file(const char *name)
{
	char path[256], text[8] = "";
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", unit_dir(), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert(fd >= 0 && fstat(fd, &st) == 0);
	assert(st.st_size == 4 && st.st_blocks <= 8 && read(fd, text, 8) == 4);
	assert(strcmp(text, "mine") == 0);
	close(fd);
}

static void descriptor_fill(uint32_t device)
{
	for (uint64_t i = 0; i < DESCRIPTOR_MANY; i++)
		ttmem_alloc(device, TTMEM_DRAM, i * 64, 1, NULL);
}

/* Closes everything, optionally opens its own file at the same number, and continues. */
static _Noreturn void descriptor_application(bool takes_number)
{
	pid_t child;
	int fd;

	ttmem_alloc(0, TTMEM_L1, 1, 1, "first");
	fd = descriptor_of_book();
	assert(fd > 2);
	descriptor_reach(1);
	descriptor_await(2);
	assert(close_range(3, ~0u, 0) == 0);
	if (takes_number)
		descriptor_take_number(fd, "parent");
	descriptor_fill(0);
	descriptor_fill(1);
	ttmem_free_all(1, TTMEM_ANY, 0);
	descriptor_reach(3);
	descriptor_await(4);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		struct observer w;

		ttmem_alloc(0, TTMEM_DRAM, 1, 5, NULL);
		descriptor_fill(1);
		assert(observer_open(&w, getpid()));
		assert(observer_hot(&w, 0, TTMEM_DRAM).bytes == 5);
		assert(observer_hot(&w, 1, TTMEM_DRAM).buffers == DESCRIPTOR_MANY);
		_exit(0);
	}
	observer_wait(child);
	/* It is still the application's own file, after the book has grown and after a fork. */
	if (takes_number)
		assert(write(fd, "", 0) == 0 && lseek(fd, 0, SEEK_CUR) == 4);
	descriptor_reach(5);
	_exit(0);
}

static void descriptor_lose(bool takes_number)
{
	struct observer w;
	pid_t child;

	descriptor_begin();
	child = fork();
	assert(child >= 0);
	if (child == 0)
		descriptor_application(takes_number);
	descriptor_await(1);
	assert(observer_open(&w, child));
	descriptor_reach(2);
	descriptor_await(3);
	assert(observer_count(child) == 0);
	assert(observer_hot(&w, 0, TTMEM_DRAM).buffers == DESCRIPTOR_MANY);
	assert(w.view.inexact == 0 && w.view.adds_up);
	assert(observer_hot(&w, 1, TTMEM_DRAM).frees == DESCRIPTOR_MANY);
	assert(w.view.live == 0 && w.view.inexact == 0);
	assert(observer_header(&w)->rejected.room == 0);
	descriptor_reach(4);
	descriptor_await(5);
	observer_wait(child);
	if (takes_number)
		descriptor_check_file("parent");
	assert(observer_look(&w, 0, VIEW_DEAD) && w.view.live == DESCRIPTOR_MANY + 1);
	observer_close(&w);
}

UNIT(book_survives_closing_all_descriptors)
{
	descriptor_lose(false);
}

UNIT(a_reused_descriptor_number_is_not_touched)
{
	descriptor_lose(true);
}

/* Makes system call @number fail from now on, for any third argument or only for @argument. */
static void descriptor_forbid(uint32_t number, uint32_t argument, bool any, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, any ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = filter};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		unit_skip("no seccomp here");
}

/* Before Linux 5.14 the book can grow only through its descriptor. */
static _Noreturn void descriptor_old_kernel(void)
{
	int fd;

	descriptor_forbid(SYS_madvise, 23 /* MADV_POPULATE_WRITE */, false, EINVAL);
	descriptor_fill(0);
	fd = descriptor_of_book();
	assert(fd > 2);
	descriptor_reach(1);
	descriptor_await(2);
	assert(close_range(3, ~0u, 0) == 0);
	descriptor_take_number(fd, "old");
	descriptor_fill(1); /* not even a first page for this device */
	for (uint64_t i = DESCRIPTOR_MANY; i < 2 * DESCRIPTOR_MANY; i++)
		ttmem_alloc(0, TTMEM_DRAM, i * 64, 1, NULL);
	for (uint64_t i = 0; i < 2 * DESCRIPTOR_MANY; i++)
		ttmem_free(0, TTMEM_DRAM, i * 64);
	descriptor_reach(3);
	_exit(0);
}

UNIT(a_reused_descriptor_number_is_not_touched_on_an_old_kernel)
{
	struct book_hot hot;
	struct observer w;
	pid_t child;

	if (observer_has_kernel())
		unit_skip("the kernel's book needs no descriptor to grow");
	descriptor_begin();
	child = fork();
	assert(child >= 0);
	if (child == 0)
		descriptor_old_kernel();
	descriptor_await(1);
	assert(observer_open(&w, child));
	assert(observer_hot(&w, 0, TTMEM_DRAM).buffers == DESCRIPTOR_MANY && w.view.inexact == 0);
	descriptor_reach(2);
	descriptor_await(3);
	observer_wait(child);
	descriptor_check_file("old");
	/* What could not be recorded is marked; the counters are exact. */
	assert(observer_look(&w, 0, VIEW_DEAD));
	hot = w.view.hot[TTMEM_DRAM];
	assert(w.view.inexact & BOOK_INEXACT_LOW << TTMEM_DRAM);
	assert(hot.allocs == 2 * DESCRIPTOR_MANY && hot.frees == 2 * DESCRIPTOR_MANY);
	assert(w.view.cold[TTMEM_DRAM].overflow_frees > 0 && hot.buffers == 0);
	assert(observer_header(&w)->rejected.room == DESCRIPTOR_MANY);
	assert(!observer_look(&w, 1, VIEW_DEAD));
	observer_close(&w);
}

static void descriptor_without(uint32_t number, uint32_t argument, bool any, int error)
{
	/* The kernel's book needs neither a memfd nor seals. */
	bool expected = any && observer_has_kernel();
	pid_t child;

	observer_track();
	unit_expect_fds(0);
	child = fork();
	assert(child >= 0);
	if (child == 0) {
		descriptor_forbid(number, argument, any, error);
		for (int i = 0; i < 10; i++)
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, "x");
		assert(ttmem_enabled() == expected);
		_exit(observer_count(getpid()) == expected ? 0 : 1);
	}
	observer_wait(child);
}

/* A sandbox that forbids what a book is made of: then there is no book. */
UNIT(without_memfd_tracking_is_off)
{
	descriptor_without(SYS_memfd_create, 0, true, EPERM);
}

UNIT(without_seals_tracking_is_off)
{
	/* The filter cannot test the second argument, F_ADD_SEALS: all of fcntl() fails. */
	descriptor_without(SYS_fcntl, 0, true, EPERM);
}

UNIT(no_wipe_on_fork)
{
	descriptor_without(SYS_madvise, 18 /* MADV_WIPEONFORK */, false, EINVAL);
}

UNIT(no_rights_for_the_mapping)
{
	descriptor_without(SYS_mprotect, PROT_READ | PROT_WRITE, false, ENOMEM);
}

/* Without stdin, stdout and stderr a new descriptor gets their numbers; ours must not keep one. */
UNIT(standard_numbers_stay_free)
{
	static const int limits[] = {0, 8, 40, 64};

	observer_track();
	unit_expect_fds(0);
	for (uint32_t i = 0; i < ARRAY_SIZE(limits); i++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			struct rlimit limit = {.rlim_cur = (rlim_t)limits[i],
					       .rlim_max = (rlim_t)limits[i]};

			if (close_range(0, ~0u, 0) < 0 ||
			    (limits[i] && setrlimit(RLIMIT_NOFILE, &limit) < 0))
				_exit(2);
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, "x");
			_exit(ttmem_enabled() == 1 && descriptor_of_book() > 2 &&
					      fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 &&
					      fcntl(2, F_GETFD) < 0
				      ? 0
				      : 1);
		}
		observer_wait(child);
	}
}

UNIT(few_free_descriptors_do_no_harm)
{
	observer_track();
	unit_expect_fds(0);
	for (rlim_t n = 0; n < 9; n++) {
		pid_t child = fork();

		assert(child >= 0);
		if (child == 0) {
			struct rlimit limit = {.rlim_cur = n, .rlim_max = n};

			assert(close_range(3, ~0u, 0) == 0);
			assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
			ttmem_alloc(0, TTMEM_DRAM, 1, 1, "x");
			/* One number for the book, one more to move it and to read our identity. */
			_exit(ttmem_enabled() == (n > 3) ? 0 : 1);
		}
		observer_wait(child);
	}
}
