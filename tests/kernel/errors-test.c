/* SPDX-License-Identifier: Apache-2.0 */

/* Each argument wrong, one at a time, and the errno that it must give; and nothing written back. */

#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing/unit.h"

/* An ioctl with everything right. */
struct errors_call {
	const char *name;
	unsigned long command;
	size_t size;
	bool of_book;
	union {
		struct ttmem_ioc_book book;
		struct ttmem_ioc_attach attach;
		struct ttmem_ioc_reserve reserve;
		struct ttmem_ioc_info info;
		struct ttmem_ioc_track_alloc alloc;
		struct ttmem_ioc_track_free free;
		struct ttmem_ioc_query_stats stats;
		uint32_t head[2]; /* argsz, flags */
		unsigned char bytes[256];
	} args;
};

#define ERRORS_CALL(member, code, book)                                                       \
	{                                                                                     \
		.name = #member, .command = (code),                                           \
		.size = sizeof(((struct errors_call *)NULL)->args.member), .of_book = (book), \
		.args.member = {                                                              \
			.argsz = sizeof(((struct errors_call *)NULL)->args.member)            \
		}                                                                             \
	}

static struct errors_call errors_calls[] = {
	ERRORS_CALL(book, TTMEM_IOC_BOOK, false),
	ERRORS_CALL(attach, TTMEM_IOC_ATTACH, false),
	ERRORS_CALL(reserve, TTMEM_IOC_RESERVE, true),
	ERRORS_CALL(info, TTMEM_IOC_INFO, true),
	ERRORS_CALL(alloc, TTMEM_IOC_TRACK_ALLOC, false),
	ERRORS_CALL(free, TTMEM_IOC_TRACK_FREE, false),
	ERRORS_CALL(stats, TTMEM_IOC_QUERY_STATS, false),
};

#define ERRORS_COUNT (sizeof(errors_calls) / sizeof(errors_calls[0]))

/* A node with a buffer, a book with a page: so that each call works as it stands. */
struct errors_place {
	int node;
	struct node_book book;
};

static void errors_begin(struct errors_place *place)
{
	place->node = node_open();
	node_make_book(&place->book);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		struct errors_call *call = &errors_calls[i];

		if (call->command == TTMEM_IOC_BOOK)
			call->args.book.size = NODE_BOOK_SIZE;
		if (call->command == TTMEM_IOC_ATTACH)
			call->args.attach.id = place->book.id;
		if (call->command == TTMEM_IOC_RESERVE)
			call->args.reserve.length = 4096;
		if (call->command == TTMEM_IOC_TRACK_ALLOC)
			call->args.alloc.size = 1;
	}
	assert(node_alloc(place->node, 0, 0, 0, 1) == 1);
}

static void errors_end(struct errors_place *place)
{
	node_drop_book(&place->book);
	close(place->node);
}

static int errors_fd(const struct errors_place *place, const struct errors_call *call)
{
	return call->of_book ? place->book.fd : place->node;
}

/* The call with arguments as changed must fail, and leave them alone. */
static void errors_expect(const struct errors_place *place, const struct errors_call *changed,
			  int expected)
{
	struct errors_call call = *changed;
	int r = node_ioctl(errors_fd(place, &call), call.command, &call.args);

	if (r != expected)
		printf("%s: %d instead of %d\n", call.name, r, expected);
	assert(r == expected);
	assert(memcmp(call.args.bytes, changed->args.bytes, sizeof(call.args.bytes)) == 0);
}

UNIT(each_call_works_as_it_stands)
{
	struct errors_place place;

	errors_begin(&place);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		struct errors_call call = errors_calls[i];

		assert(node_ioctl(errors_fd(&place, &call), call.command, &call.args) == 0);
		if (call.command == TTMEM_IOC_BOOK)
			close(call.args.book.fd);
		if (call.command == TTMEM_IOC_ATTACH)
			close(call.args.attach.fd);
	}
	errors_end(&place);
}

UNIT(a_wrong_size)
{
	static const int changes[] = {-4, -1, 1, 4};
	struct errors_place place;

	errors_begin(&place);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		for (size_t j = 0; j < 4; j++) {
			struct errors_call call = errors_calls[i];

			call.args.head[0] += (uint32_t)changes[j];
			errors_expect(&place, &call, -EINVAL);
		}
	}
	errors_end(&place);
}

UNIT(an_unknown_flag)
{
	struct errors_place place;

	errors_begin(&place);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		for (uint32_t bit = 0; bit < 32; bit++) {
			struct errors_call call = errors_calls[i];

			call.args.head[1] = 1u << bit;
			errors_expect(&place, &call, -EINVAL);
		}
	}
	errors_end(&place);
}

#define ERRORS_CASE(index, member, value, error)               \
	do {                                                   \
		struct errors_call call = errors_calls[index]; \
		call.args.member = (value);                    \
		errors_expect(&place, &call, (error));         \
	} while (0)

enum {
	BOOK,
	ATTACH,
	RESERVE,
	INFO,
	ALLOC,
	FREE,
	STATS
};

UNIT(a_wrong_value)
{
	struct errors_place place;

	errors_begin(&place);
	ERRORS_CASE(BOOK, book.size, 0, -EINVAL);
	ERRORS_CASE(BOOK, book.size, 4096, -EINVAL);
	ERRORS_CASE(BOOK, book.size, NODE_BOOK_SIZE + 4096, -EINVAL);
	ERRORS_CASE(BOOK, book.size, (UINT64_C(4) << 30) + 65536, -EINVAL);
	ERRORS_CASE(BOOK, book.size, UINT64_MAX - 65535, -EINVAL);
	ERRORS_CASE(BOOK, book.room, NODE_BOOK_SIZE + 1, -EINVAL);
	ERRORS_CASE(BOOK, book.room, UINT64_MAX, -EINVAL);
	ERRORS_CASE(BOOK, book.id, 1, -EINVAL);
	ERRORS_CASE(BOOK, book.fd, -1, -EINVAL);
	ERRORS_CASE(BOOK, book.reserved, 1, -EINVAL);
	ERRORS_CASE(ATTACH, attach.id, UINT64_MAX, -ENOENT);
	ERRORS_CASE(ATTACH, attach.id, 0, -EINVAL); /* neither id nor pid */
	ERRORS_CASE(ATTACH, attach.pid, -1, -EINVAL);
	ERRORS_CASE(ATTACH, attach.pid, 1, -ENOENT); /* another process than the id's */
	ERRORS_CASE(ATTACH, attach.pid, INT_MAX, -ENOENT);
	ERRORS_CASE(ATTACH, attach.fd, 3, -EINVAL);
	ERRORS_CASE(RESERVE, reserve.length, 0, -EINVAL);
	ERRORS_CASE(RESERVE, reserve.length, 4095, -EINVAL);
	ERRORS_CASE(RESERVE, reserve.length, NODE_BOOK_SIZE + 4096, -EINVAL);
	ERRORS_CASE(RESERVE, reserve.length, UINT64_MAX - 4095, -EINVAL);
	ERRORS_CASE(RESERVE, reserve.offset, 1, -EINVAL);
	ERRORS_CASE(RESERVE, reserve.offset, NODE_BOOK_SIZE, -EINVAL);
	ERRORS_CASE(RESERVE, reserve.offset, UINT64_MAX - 4095, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.device, TTMEM_UAPI_DEVICES, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.device, UINT32_MAX, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.type, TTMEM_UAPI_TYPES, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.type, TTMEM_UAPI_ANY, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.size, 0, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.size, TTMEM_UAPI_SIZE_MAX + 1, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.size, UINT64_MAX, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.size, 2, -EEXIST);
	ERRORS_CASE(ALLOC, alloc.reserved, 1, -EINVAL);
	ERRORS_CASE(FREE, free.device, TTMEM_UAPI_DEVICES, -EINVAL);
	ERRORS_CASE(FREE, free.device, 1, -ENOENT);
	ERRORS_CASE(FREE, free.type, TTMEM_UAPI_TYPES, -EINVAL);
	ERRORS_CASE(FREE, free.type, 1, -ENOENT);
	ERRORS_CASE(FREE, free.address, 1, -ENOENT);
	ERRORS_CASE(FREE, free.reserved, 1, -EINVAL);
	ERRORS_CASE(STATS, stats.device, TTMEM_UAPI_DEVICES, -EINVAL);
	ERRORS_CASE(STATS, stats.reserved, 1, -EINVAL);
	errors_end(&place);
}

/* What is only an answer must be 0 in the question: one day it may be asked with. */
UNIT(an_answer_in_the_question)
{
	struct errors_place place;

	errors_begin(&place);
	ERRORS_CASE(INFO, info.id, 1, -EINVAL);
	ERRORS_CASE(INFO, info.size, 1, -EINVAL);
	ERRORS_CASE(INFO, info.room, 1, -EINVAL);
	ERRORS_CASE(INFO, info.used, 1, -EINVAL);
	ERRORS_CASE(INFO, info.pid, 1, -EINVAL);
	ERRORS_CASE(INFO, info.uid, 1, -EINVAL);
	ERRORS_CASE(ALLOC, alloc.refs, 1, -EINVAL);
	ERRORS_CASE(FREE, free.size, 1, -EINVAL);
	ERRORS_CASE(FREE, free.refs, 1, -EINVAL);
	for (size_t type = 0; type < TTMEM_UAPI_TYPES; type++) {
		ERRORS_CASE(STATS, stats.all[type].bytes, 1, -EINVAL);
		ERRORS_CASE(STATS, stats.all[type].buffers, 1, -EINVAL);
		ERRORS_CASE(STATS, stats.own[type].bytes, 1, -EINVAL);
		ERRORS_CASE(STATS, stats.own[type].buffers, 1, -EINVAL);
	}
	errors_end(&place);
}

UNIT(a_bad_pointer)
{
	static const uintptr_t places[] = {0, 1, 0x7fffffffffff, UINTPTR_MAX - 4095, UINTPTR_MAX};
	struct errors_place place;

	errors_begin(&place);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		const struct errors_call *call = &errors_calls[i];

		for (size_t j = 0; j < sizeof(places) / sizeof(places[0]); j++)
			assert(ioctl(errors_fd(&place, call), call->command, places[j]) == -1 &&
			       errno == EFAULT);
	}
	errors_end(&place);
}

/* What is read only cannot be answered into; and nothing may have happened then that stays. */
UNIT(an_answer_that_cannot_be_written)
{
	struct errors_place place;
	unsigned char *page;
	int before;

	errors_begin(&place);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(page != MAP_FAILED);
	before = fcntl(0, F_DUPFD_CLOEXEC, 0);
	close(before);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		const struct errors_call *call = &errors_calls[i];

		if (call->command == TTMEM_IOC_RESERVE)
			continue; /* answers nothing */
		assert(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
		memcpy(page, &call->args, call->size);
		assert(mprotect(page, 4096, PROT_READ) == 0);
		assert(node_ioctl(errors_fd(&place, call), call->command, page) == -EFAULT);
	}
	/* What was not answered was not counted either. */
	assert(node_free(place.node, 0, 0, 0) == 0);
	assert(node_free(place.node, 0, 0, 0) == -ENOENT);
	/* No descriptor was left behind that nobody knows the number of. */
	assert(fcntl(0, F_DUPFD_CLOEXEC, 0) == before);
	close(before);
	munmap(page, 4096);
	errors_end(&place);
}

/* What is wrong is told before anything is written: a page that cannot be written does not matter then. */
UNIT(mistakes_are_found_before_an_answer_is_tried)
{
	struct ttmem_ioc_track_alloc *alloc;
	struct ttmem_ioc_track_free *release;
	struct errors_place place;
	void *page;

	errors_begin(&place);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(page != MAP_FAILED);
	alloc = page;
	*alloc = errors_calls[ALLOC].args.alloc;
	alloc->type = TTMEM_UAPI_TYPES;
	assert(mprotect(page, 4096, PROT_READ) == 0);
	assert(node_ioctl(place.node, TTMEM_IOC_TRACK_ALLOC, page) == -EINVAL);
	assert(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
	*alloc = errors_calls[ALLOC].args.alloc;
	alloc->size = 2;
	assert(mprotect(page, 4096, PROT_READ) == 0);
	assert(node_ioctl(place.node, TTMEM_IOC_TRACK_ALLOC, page) == -EEXIST);
	assert(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
	release = page;
	*release = errors_calls[FREE].args.free;
	release->address = 77;
	assert(mprotect(page, 4096, PROT_READ) == 0);
	assert(node_ioctl(place.node, TTMEM_IOC_TRACK_FREE, page) == -ENOENT);
	munmap(page, 4096);
	errors_end(&place);
}

/* The struct ends where the page ends: one byte too many read or written would be a fault. */
UNIT(flush_against_an_unmapped_page)
{
	struct errors_place place;
	unsigned char *pages;

	errors_begin(&place);
	pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		const struct errors_call *call = &errors_calls[i];
		unsigned char *at = pages + 4096 - call->size;

		memcpy(at, &call->args, call->size);
		assert(node_ioctl(errors_fd(&place, call), call->command, at) == 0);
		if (call->command == TTMEM_IOC_BOOK)
			close(((struct ttmem_ioc_book *)(void *)at)->fd);
		if (call->command == TTMEM_IOC_ATTACH)
			close(((struct ttmem_ioc_attach *)(void *)at)->fd);
		/* And one that does not quite fit. */
		memcpy(at + 4, &call->args, call->size - 4);
		assert(node_ioctl(errors_fd(&place, call), call->command, at + 4) == -EFAULT);
	}
	munmap(pages, 4096);
	errors_end(&place);
}

/* Whatever a caller does wrong, the log has nothing of it: it could be filled at will. */
UNIT(mistakes_are_not_logged)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct errors_place place;
	char line[512];
	ssize_t n;

	assert(log >= 0 && lseek(log, 0, SEEK_END) >= 0);
	errors_begin(&place);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		struct errors_call call = errors_calls[i];

		assert(ioctl(errors_fd(&place, &call), call.command, 1) == -1);
		assert(ioctl(errors_fd(&place, &call), call.command + 100, &call.args) == -1);
		call.args.head[1] = 1;
		errors_expect(&place, &call, -EINVAL);
		call.of_book = !call.of_book;
		errors_expect(&place, &call, -ENOTTY);
	}
	assert(node_alloc(place.node, 0, 0, 0, 2) == -EEXIST);
	assert(node_free(place.node, 0, 0, 77) == -ENOENT);
	assert(node_attach(UINT64_MAX, 0) == -ENOENT);
	assert(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, place.book.fd, 0) == MAP_FAILED);
	/* Of processes before us, there may be lines about what they left. */
	while ((n = read(log, line, sizeof(line) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		line[n > 0 ? n : 0] = '\0';
		assert(!strstr(line, "ttmem") || strstr(line, "ttmem: process"));
	}
	errors_end(&place);
	close(log);
}

UNIT(ioctls_that_do_not_exist)
{
	struct errors_place place;

	errors_begin(&place);
	for (unsigned long number = 0; number < 256; number++) {
		unsigned long command = _IOC(_IOC_READ | _IOC_WRITE, TTMEM_IOC_MAGIC, number, 123);

		assert(node_ioctl(place.node, command, place.book.base) == -ENOTTY);
		assert(node_ioctl(place.book.fd, command, place.book.base) == -ENOTTY);
	}
	/* The driver's, and those of the other one of the two. */
	assert(node_ioctl(place.node, _IO(0xfa, 15), NULL) == -ENOTTY);
	for (size_t i = 0; i < ERRORS_COUNT; i++) {
		struct errors_call call = errors_calls[i];

		call.of_book = !call.of_book;
		errors_expect(&place, &call, -ENOTTY);
	}
	errors_end(&place);
}

UNIT(mappings_that_are_refused)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	int node = node_open();
	int both = PROT_READ | PROT_WRITE;
	void *base;

	assert(mmap(NULL, 4096, PROT_READ, MAP_SHARED, node, 0) == MAP_FAILED && errno == ENODEV);
	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
#define REFUSED(size, prot, flags, offset, error)                                      \
	assert(mmap(NULL, (size), (prot), (flags), args.fd, (offset)) == MAP_FAILED && \
	       errno == (error))
	REFUSED(NODE_BOOK_SIZE, both, MAP_PRIVATE, 0, EINVAL);
	REFUSED(NODE_BOOK_SIZE, both | PROT_EXEC, MAP_SHARED, 0, EPERM);
	REFUSED(NODE_BOOK_SIZE, both, MAP_SHARED, 4096, EINVAL);
	REFUSED(NODE_BOOK_SIZE + 4096, both, MAP_SHARED, 0, EINVAL);
	/* A first one that was not used does not count, once all of it is gone. */
	base = mmap(NULL, NODE_BOOK_SIZE, both, MAP_SHARED, args.fd, 0);
	assert(base != MAP_FAILED && munmap(base, 4096) == 0);
	REFUSED(NODE_BOOK_SIZE, both, MAP_SHARED, 0, EBUSY);
	assert(munmap(base, NODE_BOOK_SIZE) == 0);
	base = mmap(NULL, NODE_BOOK_SIZE, both, MAP_SHARED, args.fd, 0);
	assert(base != MAP_FAILED && node_reserve(args.fd, 0, 4096) == 0);
	*(volatile char *)base = 1;
	REFUSED(NODE_BOOK_SIZE, both, MAP_SHARED, 0, EBUSY);
	assert(mprotect(base, 4096, both | PROT_EXEC) == -1 && errno == EACCES);
	assert(munmap(base, NODE_BOOK_SIZE) == 0);
	REFUSED(NODE_BOOK_SIZE, both, MAP_SHARED, 0, EBUSY); /* one owner, one mapping */
#undef REFUSED
	close(args.fd);
	close(node);
}

UNIT(too_many_books)
{
	struct ttmem_ioc_book args[TTMEM_BOOKS_PER_PROCESS + 1];
	int node = node_open();

	for (int i = 0; i < TTMEM_BOOKS_PER_PROCESS + 1; i++) {
		args[i] = (struct ttmem_ioc_book){.argsz = sizeof(args[i]), .size = NODE_BOOK_SIZE};
		assert(node_ioctl(node, TTMEM_IOC_BOOK, &args[i]) ==
		       (i < TTMEM_BOOKS_PER_PROCESS ? 0 : -EMFILE));
	}
	/* One that was never mapped is gone with its descriptor. */
	close(args[0].fd);
	args[0] = (struct ttmem_ioc_book){.argsz = sizeof(args[0]), .size = NODE_BOOK_SIZE};
	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args[0]) == 0);
	for (int i = 0; i < TTMEM_BOOKS_PER_PROCESS; i++)
		close(args[i].fd);
	close(node);
}

UNIT(no_descriptor_left)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	struct ttmem_ioc_attach attach = {.argsz = sizeof(attach)};
	int node = node_open();
	struct rlimit limit, few;

	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == 0);
	attach.id = args.id;
	assert(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	few = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
	assert(setrlimit(RLIMIT_NOFILE, &few) == 0);
	assert(node_ioctl(node, TTMEM_IOC_ATTACH, &attach) == -EMFILE);
	close(args.fd);
	args = (struct ttmem_ioc_book){.argsz = sizeof(args), .size = NODE_BOOK_SIZE};
	assert(node_ioctl(node, TTMEM_IOC_BOOK, &args) == -EMFILE);
	assert(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	close(node);
}

/* The cap of the module on what a client without a book may report. */
UNIT(too_many_plain_buffers)
{
	static const char cap[] = "/sys/module/ttmem/parameters/plain_buffers";
	int node = node_open();
	int fd = open(cap, O_WRONLY | O_CLOEXEC);

	assert(fd >= 0 && write(fd, "100", 3) == 3);
	for (uint64_t i = 0; i < 100; i++)
		assert(node_alloc(node, 0, 0, i, 1) == 1);
	assert(node_alloc(node, 0, 0, 100, 1) == -ENOSPC);
	assert(node_alloc(node, 0, 0, 99, 1) == 2);
	assert(node_free(node, 0, 0, 5) == 0);
	assert(node_alloc(node, 0, 0, 100, 1) == 1);
	assert(pwrite(fd, "65536", 5, 0) == 5);
	close(fd);
	close(node);
}
