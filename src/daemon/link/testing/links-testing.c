/* SPDX-License-Identifier: Apache-2.0 */

/* Links for tests. */

#include "daemon/link/testing/links-testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/fd-pass.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "daemon/registry/registry-private.h"
#include "daemon/registry/tracked.h"
#include "source/books/accept.h"

static void added(void *context, struct tracked *tracked)
{
	struct links_testing *world = context;

	world->added = tracked;
	links_added(world->links, tracked);
}

static void ended(void *context, struct tracked *tracked)
{
	struct links_testing *world = context;

	world->ended++;
	links_ended(world->links, tracked);
}

static void replaced(void *context, struct tracked *tracked)
{
	struct links_testing *world = context;

	world->replaced++;
	links_ended(world->links, tracked);
}

static void stated(void *context)
{
	((struct links_testing *)context)->states++;
}

static void reported(void *context, uint64_t number, const char *text, size_t length)
{
	struct links_testing *world = context;

	assert(number == LINKS_TESTING_REPORT && (length == 0 || text[0] == 'r'));
	world->reported += length;
	world->reports += length == 0;
}

static void unprinted(void *context, const char *text, size_t length)
{
	struct links_testing *world = context;

	assert(text[length - 1] == '\n');
	world->unprinted += length;
}

void links_testing_open(struct links_testing *world)
{
	struct registry_config registry = {
		.hooks = {.context = world, .added = added, .ended = ended, .replaced = replaced}};
	struct links_config links = {
		.context = world, .state = stated, .unprinted = unprinted, .report = reported};

	*world = (struct links_testing){0};
	assert(loop_new(&world->loop) == 0);
	assert(worker_new(&world->work,
			  &(struct worker_config){.name = "work", .loop = world->loop}) == 0);
	registry.loop = world->loop;
	registry.work = world->work;
	assert(registry_new(&world->registry, &registry) == 0);
	assert(access_init(&world->access, NULL, registry_namespaces(world->registry)) == 0);
	links.loop = world->loop;
	links.registry = world->registry;
	links.access = &world->access;
	assert(links_new(&world->links, &links) == 0);
	world->listening = accept_listen(unit_path("s"));
	assert(world->listening >= 0);
	assert(chmod(unit_path("s"), 0666) == 0 && chmod(unit_dir(), 0755) == 0);
}

void links_testing_close(struct links_testing *world)
{
	for (size_t i = 0; i < world->child_count; i++) {
		(void)kill(world->children[i], SIGKILL); /* it may have ended */
		(void)waitpid(world->children[i], NULL, 0);
	}
	links_free(world->links);
	worker_free(world->work);
	registry_free(world->registry);
	for (size_t i = 0; i < world->book_count; i++)
		testing_book_deinit(&world->books[i]);
	loop_free(world->loop);
	assert(close(world->listening) == 0 && unlink(unit_path("s")) == 0);
}

static int connect_here(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", unit_path("s"));
	assert(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

uid_t links_testing_need_root(uid_t user)
{
	if (getuid() != 0)
		unit_skip("only root can become others");
	return user;
}

/* A process of that user that waits to be killed; with @ret_fd it has connected before. */
/* With none of the test's descriptors: else these would stay open when the test closes them. */
static void child_run(uid_t user, int told, bool connects)
{
	int fd = -1;
	char byte = 0;

	assert(dup2(told, 3) == 3 && close_range(4, UINT32_MAX, 0) == 0);
	if (user != getuid())
		assert(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0);
	if (connects)
		fd = connect_here();
	assert(fd_pass_send(3, &byte, 1, &fd, connects ? 1 : 0, 0) == 0);
	assert(!connects || close(fd) == 0);
	assert(send(3, &byte, 1, 0) == 1);
	for (;;)
		(void)pause();
}

pid_t links_testing_child_new(struct links_testing *world, uid_t user, int *ret_fd)
{
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(1);
	int ends[2];
	char byte;
	pid_t pid;

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		child_run(user, ends[1], ret_fd != NULL);
	assert(fd_pass_receive(ends[0], &byte, 1, &got, 0) == 1);
	assert(recv(ends[0], &byte, 1, 0) == 1);
	if (ret_fd)
		*ret_fd = cleanup_steal_fd(&got.fds[0]);
	assert(close(ends[0]) == 0 && close(ends[1]) == 0);
	world->children[world->child_count++] = pid;
	return pid;
}

void links_testing_child_end(pid_t pid)
{
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

int links_testing_pid_fd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	assert(fd >= 0);
	return fd;
}

/* A keeper of that user whose link was taken, or not. */
int links_testing_link_begin(struct links_testing *world, uid_t user, uint32_t want, int expected)
{
	struct accept_peer *peer;
	int fd;

	if (user == getuid())
		fd = connect_here();
	else
		(void)links_testing_child_new(world, user, &fd);
	assert(accept_peer_new(world->listening, &peer) == 0);
	assert(links_add_consume(world->links, peer, want) == expected);
	return fd;
}

/* Handles what is there. */
void links_testing_settle(struct links_testing *world)
{
	for (int i = 0; i < 4; i++)
		assert(loop_turn(world->loop, 0) == 0);
}

void links_testing_lose(struct links_testing *world, int keeper)
{
	const struct registry *registry = world->registry;

	assert(close(keeper) == 0);
	links_testing_settle(world);
	for (size_t i = registry->count; i > 0; i--) {
		struct loop_timer *patience = &registry->entries[i - 1]->patience;

		if (patience->place == 0)
			continue;
		loop_cancel(world->loop, patience);
		patience->fire(patience);
	}
}

static void give(struct links_testing *world, int fd, const void *packet, size_t size,
		 const int *fds, size_t count)
{
	assert(fd_pass_send(fd, packet, size, fds, count, 0) == 0);
	links_testing_settle(world);
}

void links_testing_give(struct links_testing *world, int fd, enum link_kind kind, void *packet,
			size_t size)
{
	link_head_init(packet, kind, size);
	give(world, fd, packet, size, NULL, 0);
}

void links_testing_give_book(struct links_testing *world, int fd, enum link_kind kind,
			     struct book_id id)
{
	struct link_book book = {.device = id.device, .inode = id.inode};

	links_testing_give(world, fd, kind, &book, sizeof(book));
}

/* The next packet, into @ret; returns its kind. Descriptors: -1 = none. */
int links_testing_take(struct links_testing *world, int fd, void *ret, size_t size, int ret_fds[2])
{
	struct fd_pass got = FD_PASS_WANT(2);
	static uint8_t bytes[LINK_PACKET_MAX];
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	ssize_t n;

	while (poll(&wait, 1, 0) == 0)
		assert(loop_turn(world->loop, 10) == 0);
	n = fd_pass_receive(fd, bytes, sizeof(bytes), &got, 0);
	if (n <= 0)
		return -EPIPE;
	memcpy(ret, bytes, (size_t)n < size ? (size_t)n : size);
	if (ret_fds)
		memcpy(ret_fds, got.fds, 2 * sizeof(int));
	else
		fd_pass_close(&got);
	return link_check(bytes, (size_t)n);
}

bool links_testing_is_closed(struct links_testing *world, int fd)
{
	struct link_head head;

	return links_testing_take(world, fd, &head, sizeof(head), NULL) == -EPIPE;
}

bool links_testing_is_silent(struct links_testing *world, int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	links_testing_settle(world);
	return poll(&wait, 1, 0) == 0;
}

/* A book about process @pid, in a file of @user, as a keeper would make it. */
struct testing_book *links_testing_book_new(struct links_testing *world, uid_t user, pid_t pid)
{
	struct testing_book *book = &world->books[world->book_count++];
	struct testing_op op = {.kind = TESTING_ALLOC, .buffer = testing_buffer(0, 0x1000, 4096)};
	struct proc_facts facts;

	assert(seteuid(user) == 0);
	testing_book_init(book, TESTING_SIZE, BOOK_RING_MIN);
	assert(seteuid(getuid()) == 0);
	testing_book_write(book);
	testing_op_do(book->writer, &op);
	assert(proc_read(registry_proc(world->registry), (uint32_t)pid, &facts) == 0);
	book->writer->header->source = BOOK_SOURCE_SOCKET;
	book->writer->header->pid = facts.ns_pid;
	book->writer->header->start_ticks = facts.id.start_ticks;
	book->writer->header->pid_namespace = facts.pid_namespace;
	/* What it says of these is not believed. */
	book->writer->header->uid = 999;
	book->writer->header->keeper = 1;
	return book;
}

/* Offers it; whether it was taken. Takes the pidfd, -1 = none. */
bool links_testing_offer_as(struct links_testing *world, int fd, int file, int pid_fd,
			    const struct link_offer *what)
{
	struct link_offer offer = what ? *what : (struct link_offer){0};
	struct registry_counts before, after;
	const int fds[2] = {file, pid_fd};

	registry_counts(world->registry, &before);
	link_head_init(&offer.head, LINK_OFFER, sizeof(offer));
	give(world, fd, &offer, sizeof(offer), fds, pid_fd >= 0 ? 2 : 1);
	registry_counts(world->registry, &after);
	if (pid_fd >= 0)
		(void)close(pid_fd);
	/* A refusal is counted, and the link goes on. */
	assert(after.refused == before.refused || after.processes == before.processes);
	return after.refused == before.refused;
}

bool links_testing_offer(struct links_testing *world, int fd, const struct testing_book *book,
			 pid_t pid)
{
	return links_testing_offer_as(world, fd, book->fd, links_testing_pid_fd_of(pid), NULL);
}
