/* SPDX-License-Identifier: Apache-2.0 */

/* Helpers of the module's tests; the header tells what for. */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"

#define NODE_TEXT_MAX (4u << 20)
#define NODE_LINE_MAX 256u
#define NODE_TRIES 1000
#define NODE_PAUSE_NS 10000000

int node_open(void)
{
	int fd = open(TTMEM_NODE, O_RDWR | O_CLOEXEC);

	assert(fd >= 0);
	return fd;
}

int node_ioctl(int fd, unsigned long command, void *args)
{
	return ioctl(fd, command, args) < 0 ? -errno : 0;
}

void node_make_book(struct node_book *ret_book)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	int node = node_open();

	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
	close(node);
	*ret_book = (struct node_book){.fd = args.fd, .id = args.id, .size = NODE_BOOK_SIZE};
	ret_book->base =
		mmap(NULL, ret_book->size, PROT_READ | PROT_WRITE, MAP_SHARED, ret_book->fd, 0);
	assert(ret_book->base != MAP_FAILED);
}

void node_drop_book(struct node_book *book)
{
	assert(munmap(book->base, book->size) == 0);
	close(book->fd);
}

int node_reserve(int fd, uint64_t offset, uint64_t length)
{
	struct ttmem_ioc_reserve args = {.argsz = sizeof(args), .offset = offset, .length = length};

	return node_ioctl(fd, TTMEM_IOC_RESERVE, &args);
}

int node_attach(uint64_t id, pid_t pid)
{
	struct ttmem_ioc_attach args = {.argsz = sizeof(args), .id = id, .pid = pid};
	int node = node_open();
	int r = node_ioctl(node, TTMEM_IOC_ATTACH, &args);

	close(node);
	return r < 0 ? r : args.fd;
}

void node_write(struct node_book *book, uint32_t device, uint32_t type, uint64_t bytes,
		uint64_t buffers)
{
	uint64_t offset = NODE_SHARDS + device * NODE_SHARD_SIZE;
	struct book_shard *shard = (struct book_shard *)(void *)(book->base + offset);
	struct book_hot *hot;
	uint64_t number;

	assert(node_reserve(book->fd, offset, NODE_SHARD_SIZE) == 0);
	shard->state = 1;
	number = shard->hot[type][0].number + shard->hot[type][1].number + 1;
	hot = &shard->hot[type][number % 2];
	*hot = (struct book_hot){.bytes = bytes, .buffers = buffers, .peak = bytes, .allocs = 1};
	__atomic_store_n(&hot->number, number, __ATOMIC_RELEASE);
}

int node_alloc(int node, uint32_t device, uint32_t type, uint64_t address, uint64_t size)
{
	struct ttmem_ioc_track_alloc args = {
		.argsz = sizeof(args),
		.device = device,
		.type = type,
		.address = address,
		.size = size,
	};
	int r = node_ioctl(node, TTMEM_IOC_TRACK_ALLOC, &args);

	return r < 0 ? r : (int)args.refs;
}

int node_free(int node, uint32_t device, uint32_t type, uint64_t address)
{
	struct ttmem_ioc_track_free args = {
		.argsz = sizeof(args), .device = device, .type = type, .address = address};
	int r = node_ioctl(node, TTMEM_IOC_TRACK_FREE, &args);

	return r < 0 ? r : (int)args.refs;
}

const char *node_text(const char *path)
{
	static char text[NODE_TEXT_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t n;

	text[0] = '\0';
	if (fd < 0)
		return text;
	while ((n = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)n;
	text[length] = '\0';
	close(fd);
	return text;
}

/* The text from @from to the end of its line. sscanf() looks for the end of all that it is given, so it gets this. */
static const char *node_line(const char *from, char ret_line[NODE_LINE_MAX])
{
	const char *end = strchr(from, '\n');
	size_t length;

	assert(end);
	length = (size_t)(end - from);
	assert(length < NODE_LINE_MAX);
	memcpy(ret_line, from, length);
	ret_line[length] = '\0';
	return end + 1;
}

/* Device UINT32_MAX = any, pid 0 = any. Return: how many holders fit. */
static uint32_t node_sum(uint32_t device, pid_t pid, uint64_t *ret_bytes, uint64_t *ret_buffers)
{
	const char *text = node_text("/proc/driver/ttmem/totals");
	char line[NODE_LINE_MAX];
	bool wanted = false;
	uint32_t count = 0;

	*ret_bytes = *ret_buffers = 0;
	assert(strncmp(text, "ttmem 1\n", 8) == 0);
	while (*text) {
		unsigned long long bytes, buffers;
		unsigned int at, type;
		int of;

		text = node_line(text, line);
		if (sscanf(line, "holder %*u %*s %*u %d", &of) == 1) {
			wanted = pid == 0 || of == pid;
			count += wanted;
		} else if (wanted &&
			   sscanf(line, "memory %u %u %llu %llu", &at, &type, &bytes, &buffers) ==
				   4 &&
			   (device == UINT32_MAX || at == device)) {
			*ret_bytes += bytes;
			*ret_buffers += buffers;
		}
	}
	return count;
}

void node_totals(uint32_t device, uint64_t *ret_bytes, uint64_t *ret_buffers)
{
	(void)node_sum(device, 0, ret_bytes, ret_buffers); /* nobody is fine */
}

bool node_totals_of(pid_t pid, uint64_t *ret_bytes, uint64_t *ret_buffers)
{
	return node_sum(UINT32_MAX, pid, ret_bytes, ret_buffers) > 0;
}

bool node_becomes(uint32_t device, uint64_t bytes, uint64_t buffers)
{
	static const struct timespec pause = {.tv_nsec = NODE_PAUSE_NS};
	uint64_t now_bytes = 0, now_buffers = 0;

	for (int i = 0; i < NODE_TRIES; i++) {
		node_totals(device, &now_bytes, &now_buffers);
		if (now_bytes == bytes && now_buffers == buffers)
			return true;
		(void)nanosleep(&pause, NULL); /* shortened: then sooner */
	}
	printf("device %u: %llu bytes in %llu buffers, not %llu in %llu\n", device,
	       (unsigned long long)now_bytes, (unsigned long long)now_buffers,
	       (unsigned long long)bytes, (unsigned long long)buffers);
	return false;
}

uint64_t node_find_mapping(uintptr_t *ret_start, uintptr_t *ret_end)
{
	const char *maps = node_text("/proc/self/maps");
	unsigned long start, end;

	*ret_start = *ret_end = 0;
	for (; *maps; maps = strchr(maps, '\n') + 1) {
		const char *name = strstr(maps, "ttmem-book");

		if (!name || name > strchr(maps, '\n') ||
		    sscanf(maps, "%lx-%lx", &start, &end) != 2)
			continue;
		assert(*ret_end == 0 || *ret_end == start);
		*ret_start = *ret_start ? *ret_start : start;
		*ret_end = end;
	}
	return *ret_end - *ret_start;
}
