/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory runs out: each call is repeated with its first allocation failing, then its second, and so on
 * until none fails any more. It must answer ENOMEM (or do without), and leave nothing behind. Only a kernel
 * that can make allocations fail can do this: the debug kernel.
 */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/testing/unit.h"

#define FAIL_DEVICE 70u
#define FAIL_MAX 200

static bool fail_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

static int fail_begin(void)
{
	static const char *const settings[][2] = {
		{"failslab/ignore-gfp-wait", "N"},        {"failslab/verbose", "0"},
		{"fail_page_alloc/ignore-gfp-wait", "N"}, {"fail_page_alloc/min-order", "0"},
		{"fail_page_alloc/verbose", "0"},
	};
	char path[128];
	int fd;

	if (mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL) < 0 && errno != EBUSY)
		unit_skip("no debugfs");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", settings[i][0]);
		if (!fail_put(path, settings[i][1]))
			unit_skip("this kernel does not make allocations fail");
	}
	fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	assert(fd >= 0);
	return fd;
}

typedef int fail_fn(int fd);

/* Until nothing fails any more. @on: what @call gets. */
static void fail_each(fail_fn *call, int on)
{
	int control = fail_begin(), n = 1, failed = 0;
	char text[16];

	for (; n < FAIL_MAX; n++) {
		bool was_hit;
		int r;

		snprintf(text, sizeof(text), "%d", n);
		assert(pwrite(control, text, strlen(text), 0) > 0);
		r = call(on);
		memset(text, 0, sizeof(text));
		assert(pread(control, text, sizeof(text) - 1, 0) > 0);
		was_hit = text[0] == '0';
		assert(pwrite(control, "0", 1, 0) == 1);
		if (r < 0 && r != -ENOMEM && r != -EAGAIN)
			printf("allocation %d: %d\n", n, r);
		assert(r >= 0 || r == -ENOMEM || r == -EAGAIN);
		failed += r < 0;
		if (!was_hit) {
			assert(r >= 0);
			break;
		}
	}
	printf("%d allocations, %d of them vital\n", n - 1, failed);
	assert(n > 1 && n < FAIL_MAX && failed > 0);
	close(control);
}

static int fail_open(int unused)
{
	int fd = open(TTMEM_NODE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

UNIT(failing_memory_while_opening_the_node_leaks_nothing)
{
	fail_each(fail_open, -1);
}

static int fail_book(int node)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	int r = node_ioctl(node, TTMEM_IOC_BOOK, &args);

	if (r == 0)
		close(args.fd);
	return r;
}

UNIT(failing_memory_while_making_a_book_leaks_nothing)
{
	int node = node_open();

	fail_each(fail_book, node);
	close(node);
	assert(strcmp(node_text("/proc/driver/ttmem/totals"), "ttmem 1\n") == 0);
}

static int fail_reserve(int fd)
{
	return node_reserve(fd, NODE_SHARDS + FAIL_DEVICE * NODE_SHARD_SIZE, 16 * 4096);
}

UNIT(failing_memory_while_reserving_leaks_nothing)
{
	struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	struct node_book book;

	node_make_book(&book);
	fail_each(fail_reserve, book.fd);
	assert(node_ioctl(book.fd, TTMEM_IOC_INFO, &info) == 0 && info.used == 16 * 4096);
	node_drop_book(&book);
}

/* One that failed is no first one: the next is not refused. */
static int fail_map(int fd)
{
	void *base = mmap(NULL, NODE_BOOK_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	/* That may be what fails, but not twice. */
	assert(munmap(base, NODE_BOOK_SIZE) == 0 || munmap(base, NODE_BOOK_SIZE) == 0);
	return 0;
}

UNIT(failing_memory_while_mapping_leaks_nothing)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	int node = node_open();

	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
	fail_each(fail_map, args.fd);
	close(args.fd);
	close(node);
}

static int fail_attach(int node)
{
	struct ttmem_ioc_attach args = {.argsz = sizeof(args), .pid = getpid()};
	int r = node_ioctl(node, TTMEM_IOC_ATTACH, &args);

	if (r == 0)
		close(args.fd);
	return r;
}

UNIT(failing_memory_while_attaching_leaks_nothing)
{
	struct node_book book;
	int node = node_open();

	node_make_book(&book);
	fail_each(fail_attach, node);
	node_drop_book(&book);
	close(node);
}

/* A new device each time, so that there is something to allocate. */
static int fail_track(int node)
{
	static uint32_t device;
	int r = node_alloc(node, FAIL_DEVICE + device, 0, 0, 100);

	if (r < 0)
		return r;
	device++;
	assert(node_free(node, FAIL_DEVICE + device - 1, 0, 0) == 0);
	return 0;
}

UNIT(failing_memory_while_reporting_leaks_nothing)
{
	uint64_t bytes, buffers;
	int node = node_open();

	fail_each(fail_track, node);
	node_totals(UINT32_MAX, &bytes, &buffers); /* of any */
	assert(bytes == 0 && buffers == 0);
	close(node);
}

static int fail_read(int unused)
{
	char text[512];
	int fd = open("/proc/driver/ttmem/totals", O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int r;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text));
	r = n < 0 ? -errno : 0;
	close(fd);
	return r;
}

UNIT(failing_memory_while_reading_totals_leaks_nothing)
{
	fail_each(fail_read, -1);
}
