/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a program sends over a link, each packet with descriptors: the daemon goes on, keeps only the book that
 * was there to be offered, and leaves no descriptor open.
 *
 * Input: packets, each a byte for its descriptors (0 none, 1 a device, 2 a book, 3 a book and a pidfd, 4 a
 * pidfd and a book), a byte that is added to the size of its kind, and the packet from its kind on; the
 * magic, version and size are right unless that byte is 255.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/fd-pass.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "book/testing/book-testing.h"
#include "daemon/link/links.h"
#include "daemon/registry/access.h"
#include "daemon/registry/registry.h"
#include "source/books/accept.h"
#include "source/proc/proc.h"
#include "wire/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_PACKETS 32

struct fuzz {
	struct loop *loop;
	struct registry *registry;
	struct links *links;
	struct access access;
	int fd; /* the program's end */
};

static struct testing_book book;
static int device, pid_fd;

static void fuzz_tracked(void *context, struct tracked *tracked)
{
	(void)context;
	(void)tracked;
}

static void fuzz_stated(void *context)
{
	struct fuzz *fuzz = context;
	const struct link_state *state = links_state(fuzz->links);

	assert(!state || memchr(state->path, '\0', sizeof(state->path)));
}

static void fuzz_report(void *context, uint64_t number, const char *text, size_t length)
{
	(void)context;
	(void)number;
	(void)text;
	(void)length;
}

static void fuzz_unprinted(void *context, const char *text, size_t length)
{
	(void)context;
	(void)text;
	(void)length;
	abort(); /* nothing is printed here */
}

/* A book of this process, as a keeper would have made it. */
static void fuzz_prepare(void)
{
	struct proc proc;

	if (book.base)
		return;
	assert(proc_open(&proc) == 0);
	testing_book_init(&book, TESTING_SIZE, BOOK_RING_MIN);
	testing_book_write(&book);
	book.writer->header->source = BOOK_SOURCE_SOCKET;
	book.writer->header->start_ticks = proc_start_ticks(&proc, (uint32_t)getpid());
	proc_close(&proc);
	device = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pid_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	assert(device >= 0 && pid_fd >= 0);
}

static void fuzz_open(struct fuzz *fuzz)
{
	struct registry_config registry = {.hooks = {.context = fuzz,
						     .added = fuzz_tracked,
						     .ended = fuzz_tracked,
						     .replaced = fuzz_tracked}};
	struct links_config links = {.context = fuzz,
				     .state = fuzz_stated,
				     .unprinted = fuzz_unprinted,
				     .report = fuzz_report};
	struct accept_peer *peer = calloc(1, sizeof(*peer));
	int pair[2];

	assert(peer && loop_new(&fuzz->loop) == 0);
	registry.loop = links.loop = fuzz->loop;
	assert(registry_new(&fuzz->registry, &registry) == 0);
	assert(access_init(&fuzz->access, NULL, registry_namespaces(fuzz->registry)) == 0);
	links.registry = fuzz->registry;
	links.access = &fuzz->access;
	assert(links_new(&fuzz->links, &links) == 0);
	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	fuzz->fd = pair[0];
	*peer = (struct accept_peer){.fd = pair[1], .pid_fd = -1};
	assert(links_add_consume(fuzz->links, peer, LINK_WANT_ALL) == 0);
}

static void fuzz_close(struct fuzz *fuzz)
{
	links_free(fuzz->links);
	registry_free(fuzz->registry);
	loop_free(fuzz->loop);
	assert(close(fuzz->fd) == 0);
}

/* Sends the first packet of the input; returns how much of it that was. */
static size_t fuzz_send(const struct fuzz *fuzz, const uint8_t *data, size_t size)
{
	const int fds[][2] = {
		{-1, -1}, {device, -1}, {book.fd, -1}, {book.fd, pid_fd}, {pid_fd, book.fd}};
	static const size_t counts[] = {0, 1, 1, 2, 2};
	uint8_t packet[512] = {0};
	struct link_head head = {.magic = LINK_MAGIC, .version = LINK_VERSION};
	size_t set = data[0] % 5, used = 2, length = sizeof(head);

	if (size > 2) {
		head.kind = data[2];
		used = 3;
	}
	while (used < size && length < data[1] && length < sizeof(packet))
		packet[length++] = data[used++];
	head.size = data[1] == UINT8_MAX ? 0 : (uint32_t)length;
	memcpy(packet, &head, sizeof(head));
	/* The other end may have gone. */
	(void)fd_pass_send(fuzz->fd, packet, length, fds[set], counts[set], MSG_DONTWAIT);
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct registry_counts counts;
	struct fuzz fuzz;
	int before, after;

	fuzz_prepare();
	before = dup(device); /* NOLINT(android-cloexec-dup): closed at once */
	assert(before >= 0 && close(before) == 0);
	fuzz_open(&fuzz);
	for (int i = 0; size >= 2 && i < FUZZ_PACKETS; i++) {
		size_t used = fuzz_send(&fuzz, data, size);

		data += used;
		size -= used;
		assert(loop_turn(fuzz.loop, 0) == 0);
	}
	assert(loop_turn(fuzz.loop, 0) == 0);
	registry_counts(fuzz.registry, &counts);
	assert(counts.processes <= 1 && counts.ended == 0);
	fuzz_close(&fuzz);
	/* open() and dup() return the lowest free number, so nothing was left open. */
	after = dup(device); /* NOLINT(android-cloexec-dup): likewise */
	assert(after == before && close(after) == 0);
	return 0;
}
