/* SPDX-License-Identifier: Apache-2.0 */

/* The ioctls of ttmem.ko that a book's owner needs. They may change errno: callers restore it. */

#include "lib/bookfile/kernel-book.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <uapi/ttmem.h>

/* Whatever file is there, opening it must not block or make it our controlling terminal. */
static int kernel_book_open(void)
{
	int fd = open(TTMEM_NODE, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

bool kernel_book_is_there(void)
{
	const char *text = secure_getenv("TTMEM_KERNEL");
	int fd = text && strcmp(text, "0") == 0 ? -ENOENT : kernel_book_open();

	if (fd < 0)
		return false;
	(void)close(fd); /* nothing was done with it */
	return true;
}

/* Opens the node for a single ioctl. */
static int kernel_book_ask(unsigned long command, void *args)
{
	int node = kernel_book_open();
	int r;

	if (node < 0)
		return node;
	r = ioctl(node, command, args) < 0 ? -errno : 0;
	(void)close(node); /* what it made has a descriptor of its own */
	return r;
}

int kernel_book_make(uint64_t size, uint64_t *room, uint64_t *ret_id)
{
	struct ttmem_ioc_book args = {.argsz = sizeof(args), .size = size, .room = *room};
	int r = kernel_book_ask(TTMEM_IOC_BOOK, &args);

	if (r < 0)
		return r;
	*room = args.room;
	*ret_id = args.id;
	return args.fd;
}

int kernel_book_attach(uint64_t id)
{
	struct ttmem_ioc_attach args = {.argsz = sizeof(args), .id = id};
	int r = kernel_book_ask(TTMEM_IOC_ATTACH, &args);

	return r < 0 ? r : args.fd;
}

int kernel_book_reserve(int fd, uint64_t offset, uint64_t length)
{
	struct ttmem_ioc_reserve args = {.argsz = sizeof(args), .offset = offset, .length = length};

	return ioctl(fd, TTMEM_IOC_RESERVE, &args) < 0 ? -errno : 0;
}
