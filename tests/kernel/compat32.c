/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A program of 32 bits that makes every call of the node, with values that need 64. Without a C library, so
 * that it can be built where there is none of that width. Its exit status is the line of what went wrong;
 * 0 = nothing did.
 */

#include <asm/unistd_32.h>
#include <uapi/ttmem.h>

#define COMPAT32_SIZE (16u << 20)
#define COMPAT32_DEVICE 9u
#define COMPAT32_ADDRESS 0x123456789abcULL
#define COMPAT32_BYTES (5ULL << 32 | 1)
#define COMPAT32_READ_WRITE 2
#define COMPAT32_PROT_BOTH 3
#define COMPAT32_MAP_SHARED 1

_Static_assert(sizeof(void *) == 4, "that is what it is for");

static long compat32_call(long number, long a, long b, long c, long d)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(0)
			 : "memory");
	return result;
}

/* Six arguments need the register that frames are found by. */
static long compat32_map(long size, long fd)
{
	long arguments[6] = {0, size, COMPAT32_PROT_BOTH, COMPAT32_MAP_SHARED, fd, 0};

	return compat32_call(__NR_mmap, (long)arguments, 0, 0, 0);
}

static long compat32_ioctl(long fd, unsigned long command, void *args)
{
	return compat32_call(__NR_ioctl, fd, (long)command, (long)args, 0);
}

#define COMPAT32_CHECK(condition)        \
	do {                             \
		if (!(condition))        \
			return __LINE__; \
	} while (0)

static int compat32_plain(long node)
{
	static struct ttmem_ioc_track_alloc alloc = {.argsz = sizeof(alloc),
						     .device = COMPAT32_DEVICE,
						     .type = 6,
						     .address = COMPAT32_ADDRESS,
						     .size = COMPAT32_BYTES};
	static struct ttmem_ioc_track_free release = {.argsz = sizeof(release),
						      .device = COMPAT32_DEVICE,
						      .type = TTMEM_UAPI_ANY,
						      .address = COMPAT32_ADDRESS};
	static struct ttmem_ioc_query_stats stats = {.argsz = sizeof(stats),
						     .device = COMPAT32_DEVICE};

	COMPAT32_CHECK(compat32_ioctl(node, TTMEM_IOC_TRACK_ALLOC, &alloc) == 0);
	COMPAT32_CHECK(alloc.refs == 1);
	COMPAT32_CHECK(compat32_ioctl(node, TTMEM_IOC_QUERY_STATS, &stats) == 0);
	COMPAT32_CHECK(stats.own[6].bytes == COMPAT32_BYTES && stats.own[6].buffers == 1);
	COMPAT32_CHECK(stats.all[6].bytes >= COMPAT32_BYTES && stats.own[0].bytes == 0);
	COMPAT32_CHECK(compat32_ioctl(node, TTMEM_IOC_TRACK_FREE, &release) == 0);
	COMPAT32_CHECK(release.size == COMPAT32_BYTES && release.refs == 0);
	return 0;
}

static int compat32_book(long node)
{
	static struct ttmem_ioc_book book = {.argsz = sizeof(book), .size = COMPAT32_SIZE};
	static struct ttmem_ioc_reserve reserve = {
		.argsz = sizeof(reserve), .offset = 0x10000, .length = 0x1000};
	static struct ttmem_ioc_info info = {.argsz = sizeof(info)};
	static struct ttmem_ioc_attach attach = {.argsz = sizeof(attach)};
	static char byte;
	char *base;

	COMPAT32_CHECK(compat32_ioctl(node, TTMEM_IOC_BOOK, &book) == 0);
	COMPAT32_CHECK(book.id && book.room == COMPAT32_SIZE && book.fd > 2);
	COMPAT32_CHECK(compat32_ioctl(book.fd, TTMEM_IOC_RESERVE, &reserve) == 0);
	base = (char *)compat32_map(COMPAT32_SIZE, book.fd);
	COMPAT32_CHECK((unsigned long)base < -4096UL);
	base[0x10005] = 'x';
	COMPAT32_CHECK(compat32_ioctl(book.fd, TTMEM_IOC_INFO, &info) == 0);
	COMPAT32_CHECK(info.id == book.id && info.size == COMPAT32_SIZE && info.used == 0x1000);
	attach.id = book.id;
	COMPAT32_CHECK(compat32_ioctl(node, TTMEM_IOC_ATTACH, &attach) == 0);
	COMPAT32_CHECK(compat32_call(__NR_lseek, attach.fd, 0x10005, 0, 0) == 0x10005);
	COMPAT32_CHECK(compat32_call(__NR_read, attach.fd, (long)&byte, 1, 0) == 1);
	COMPAT32_CHECK(byte == 'x');
	return 0;
}

__attribute__((force_align_arg_pointer)) void _start(void)
{
	long node = compat32_call(__NR_open, (long)TTMEM_NODE, COMPAT32_READ_WRITE, 0, 0);
	long status = node < 0 ? 1 : compat32_plain(node);

	if (status == 0)
		status = compat32_book(node);
	(void)compat32_call(__NR_exit, status, 0, 0, 0); /* does not come back */
	for (;;)
		;
}
