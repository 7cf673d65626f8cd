/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Books whose owners have closed our descriptor. No process holds their file where it could be
 * found, but they are mapped, and the module hands out another descriptor to those with the right
 * to it: the book's user, or CAP_PERFMON.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uapi/ttmem.h>

#include "base/cleanup.h"
#include "source/books/scan.h"
#include "source/host/kernel.h"
#include "source/proc/proc.h"

struct kernel_attaching {
	struct scan *scan;
	int node; /* -1 = not opened yet */
};

/* Returns a descriptor of the book, or a negative errno. */
static int kernel_attach(struct kernel_attaching *attaching, uint64_t id)
{
	struct ttmem_ioc_attach args = {.argsz = sizeof(args), .id = id};

	if (attaching->node < 0)
		attaching->node = open(TTMEM_NODE, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (attaching->node < 0 || ioctl(attaching->node, TTMEM_IOC_ATTACH, &args) < 0)
		return -errno;
	return args.fd;
}

static int kernel_attach_holder(void *context, const struct kernel_holder *holder)
{
	struct kernel_attaching *attaching = context;
	struct scan *scan = attaching->scan;
	struct scan_handed handed = {.maker = holder->uid, .alive = true};
	char container[PROC_CONTAINER_SIZE] = "";
	CLEANUP_CLOSE int fd = -1;
	struct stat st;
	int r;

	if (!holder->is_book || holder->pid == 0 || holder->book.device == 0 ||
	    scan_has(scan, holder->book) || proc_read(&scan->proc, holder->pid, &handed.owner) < 0)
		return 0;
	fd = kernel_attach(attaching, holder->book.inode);
	/* The samples of another machine have inode numbers, too. */
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_dev != holder->book.device ||
	    st.st_ino != (ino_t)holder->book.inode)
		return 0;
	proc_container(&scan->proc, holder->pid, container);
	handed.container = container;
	r = scan_hand_consume(scan, cleanup_steal_fd(&fd), &handed);
	return r == -ENOMEM ? r : 0; /* what is not a book still has totals */
}

static int kernel_attach_memory(void *context, uint32_t device, uint32_t type,
				const struct snapshot_memory *memory, bool is_torn)
{
	return 0;
}

int kernel_attach_books(struct scan *scan)
{
	struct kernel_attaching attaching = {.scan = scan, .node = -1};
	struct kernel_parser parser = {
		.holder = kernel_attach_holder,
		.memory = kernel_attach_memory,
		.context = &attaching,
	};
	int r = kernel_read(&scan->proc, &parser);

	if (attaching.node >= 0)
		(void)close(attaching.node); /* the descriptors that it gave are independent */
	scan_sort(scan);
	return r == -ENOMEM ? r : 0; /* the collector of totals reports the rest */
}
