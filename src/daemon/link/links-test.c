/* SPDX-License-Identifier: Apache-2.0 */

/* A keeper as the daemon sees it, with real processes and users: what is taken of it, and what it is told. */

#include "daemon/link/links.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/fd-pass.h"
#include "base/quota.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "base/threads/worker.h"
#include "book/testing/book-testing.h"
#include "daemon/link/link-queue.h"
#include "daemon/registry/access.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "source/books/accept.h"
#include "wire/link.h"

#define USER 12345
#define OTHER 12346
#define WORLD_BOOKS 8

struct world {
	struct loop *loop;
	struct worker *work;
	struct registry *registry;
	struct access access;
	struct links *links;
	int listening;
	struct testing_book books[WORLD_BOOKS];
	size_t book_count;
	pid_t children[16];
	size_t child_count;
	const struct tracked *added;
	unsigned int ended, replaced, states;
	char unprinted[64];
};

static void added(void *context, struct tracked *tracked)
{
	struct world *world = context;

	world->added = tracked;
	links_added(world->links, tracked);
}

static void ended(void *context, struct tracked *tracked)
{
	struct world *world = context;

	world->ended++;
	links_ended(world->links, tracked);
}

static void replaced(void *context, struct tracked *tracked)
{
	struct world *world = context;

	world->replaced++;
	links_ended(world->links, tracked);
}

static void stated(void *context)
{
	((struct world *)context)->states++;
}

static void unprinted(void *context, const char *text, size_t length)
{
	struct world *world = context;
	size_t at = strlen(world->unprinted);

	assert(at + length < sizeof(world->unprinted));
	memcpy(world->unprinted + at, text, length);
}

static void world_open(struct world *world)
{
	struct registry_config registry = {
		.hooks = {.context = world, .added = added, .ended = ended, .replaced = replaced}};
	struct links_config links = {.context = world, .state = stated, .unprinted = unprinted};

	*world = (struct world){0};
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

static void world_close(struct world *world)
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

static uid_t need_root(uid_t user)
{
	if (getuid() != 0)
		unit_skip("only root can become others");
	return user;
}

/* A process of that user that waits to be killed; with @ret_fd it has connected before. */
static pid_t child_new(struct world *world, uid_t user, int *ret_fd)
{
	CLEANUP_FD_PASS struct fd_pass got = FD_PASS_WANT(1);
	int ends[2];
	char byte = 0;
	pid_t pid;

	assert(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		int fd = -1;

		if (user != getuid())
			assert(setresgid(user, user, user) == 0 &&
			       setresuid(user, user, user) == 0);
		if (ret_fd)
			fd = connect_here();
		assert(fd_pass_send(ends[1], &byte, 1, &fd, ret_fd ? 1 : 0, 0) == 0);
		assert(close_range(3, UINT32_MAX, 0) == 0); /* those of the test, too */
		for (;;)
			(void)pause();
	}
	assert(fd_pass_receive(ends[0], &byte, 1, &got, 0) == 1);
	if (ret_fd)
		*ret_fd = cleanup_steal_fd(&got.fds[0]);
	assert(close(ends[0]) == 0 && close(ends[1]) == 0);
	world->children[world->child_count++] = pid;
	return pid;
}

static void child_end(pid_t pid)
{
	assert(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static int pid_fd_of(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	assert(fd >= 0);
	return fd;
}

/* A keeper of that user whose link was taken, or not. */
static int link_begin(struct world *world, uid_t user, uint32_t want, int expected)
{
	struct accept_peer *peer;
	int fd;

	if (user == getuid())
		fd = connect_here();
	else
		(void)child_new(world, user, &fd);
	assert(accept_peer_new(world->listening, &peer) == 0);
	assert(links_add_consume(world->links, peer, want) == expected);
	return fd;
}

/* Handles what is there. */
static void settle(struct world *world)
{
	for (int i = 0; i < 4; i++)
		assert(loop_turn(world->loop, 0) == 0);
}

static void give(struct world *world, int fd, enum link_kind kind, void *packet, size_t size,
		 const int *fds, size_t count)
{
	link_head_init(packet, kind, size);
	assert(fd_pass_send(fd, packet, size, fds, count, 0) == 0);
	settle(world);
}

static void give_book(struct world *world, int fd, enum link_kind kind, struct book_id id)
{
	struct link_book book = {.device = id.device, .inode = id.inode};

	give(world, fd, kind, &book, sizeof(book), NULL, 0);
}

/* The next packet, into @ret; returns its kind. Descriptors: -1 = none. */
static int take(struct world *world, int fd, void *ret, size_t size, int ret_fds[2])
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

static bool is_closed(struct world *world, int fd)
{
	struct link_head head;

	return take(world, fd, &head, sizeof(head), NULL) == -EPIPE;
}

static bool is_silent(struct world *world, int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	settle(world);
	return poll(&wait, 1, 0) == 0;
}

/* A book about process @pid, in a file of @user, as a keeper would make it. */
static struct testing_book *book_new(struct world *world, uid_t user, pid_t pid)
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
static bool offer_as(struct world *world, int fd, int file, int pid_fd,
		     const struct link_offer *what)
{
	struct link_offer offer = what ? *what : (struct link_offer){0};
	struct registry_counts before, after;
	const int fds[2] = {file, pid_fd};

	registry_counts(world->registry, &before);
	give(world, fd, LINK_OFFER, &offer, sizeof(offer), fds, pid_fd >= 0 ? 2 : 1);
	registry_counts(world->registry, &after);
	if (pid_fd >= 0)
		(void)close(pid_fd);
	/* A refusal is counted, and the link goes on. */
	assert(after.refused == before.refused || after.processes == before.processes);
	return after.refused == before.refused;
}

static bool offer(struct world *world, int fd, const struct testing_book *book, pid_t pid)
{
	return offer_as(world, fd, book->fd, pid_fd_of(pid), NULL);
}

UNIT(a_kept_book_is_its_processs)
{
	struct world world;
	int keeper;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, getuid(), NULL);
	keeper = link_begin(&world, getuid(), 0, 0);
	assert(offer(&world, keeper, book_new(&world, geteuid(), pid), pid));
	assert(world.added->process.pid == (uint32_t)pid && world.added->user == getuid());
	assert(world.added->maker == getuid() && world.added->source == BOOK_SOURCE_SOCKET);
	assert((fcntl(world.added->book->file.fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	/* Its end takes both. */
	child_end(pid);
	settle(&world);
	assert(world.ended == 0);
	give_book(&world, keeper, LINK_CLOSED, world.added->id);
	assert(world.ended == 1 && is_silent(&world, keeper) && close(keeper) == 0);
	world_close(&world);
}

UNIT(the_books_of_a_keeper_that_has_gone_end_with_their_processes)
{
	struct world world;
	pid_t first, second;
	int keeper;

	world_open(&world);
	first = child_new(&world, getuid(), NULL);
	second = child_new(&world, getuid(), NULL);
	keeper = link_begin(&world, getuid(), 0, 0);
	assert(offer(&world, keeper, book_new(&world, geteuid(), first), first));
	assert(offer(&world, keeper, book_new(&world, geteuid(), second), second));
	child_end(first);
	settle(&world);
	assert(world.ended == 0 && close(keeper) == 0);
	settle(&world);
	assert(world.ended == 1);
	child_end(second);
	settle(&world);
	assert(world.ended == 2);
	world_close(&world);
}

/* Of root: it keeps books for all users; they see and pay for what is theirs. */
UNIT(a_trusted_keeper_keeps_books_for_all_users)
{
	uid_t user = need_root(USER);
	struct world world;
	int keeper;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, user, NULL);
	keeper = link_begin(&world, 0, 0, 0);
	assert(offer(&world, keeper, book_new(&world, 0, pid), pid));
	assert(world.added->maker == user && world.added->user == user);
	assert(close(keeper) == 0);
	world_close(&world);
}

UNIT(a_user_keeps_books_for_processes_of_its_own)
{
	uid_t user = need_root(USER);
	struct world world;
	int keeper;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, user, NULL);
	keeper = link_begin(&world, user, 0, 0);
	assert(offer(&world, keeper, book_new(&world, user, pid), pid));
	assert(world.added->maker == user && close(keeper) == 0);
	world_close(&world);
}

/* Everything else is right each time, and without what is wrong the offer is taken. */
UNIT(what_a_user_may_not_offer_is_refused)
{
	uid_t user = need_root(USER), other = OTHER;
	pid_t own, foreign, dead;
	struct testing_book *book;
	struct world world;
	struct link_offer says = {0};
	int keeper;

	world_open(&world);
	own = child_new(&world, user, NULL);
	foreign = child_new(&world, other, NULL);
	keeper = link_begin(&world, user, 0, 0);
	/* A process of another user; the file of another user. */
	assert(!offer(&world, keeper, book_new(&world, user, foreign), foreign));
	assert(!offer(&world, keeper, book_new(&world, other, own), own));
	assert(!offer(&world, keeper, book_new(&world, 0, own), own));
	/* A pidfd that is not of the process in the header; none; what is no pidfd. */
	book = book_new(&world, user, own);
	assert(!offer(&world, keeper, book, foreign));
	assert(!offer(&world, keeper, book, getpid()));
	says = (struct link_offer){.pid = (uint32_t)own,
				   .user = user,
				   .start_ticks = book->writer->header->start_ticks};
	assert(!offer_as(&world, keeper, book->fd, -1, &says));
	assert(!offer_as(&world, keeper, book->fd, eventfd(0, EFD_CLOEXEC), &says));
	/* Another pid namespace than its process's. */
	book->writer->header->pid_namespace++;
	assert(!offer(&world, keeper, book, own));
	book->writer->header->pid_namespace--;
	/* Not kept for anybody. */
	book->writer->header->source = BOOK_SOURCE_LIBRARY;
	assert(!offer(&world, keeper, book, own));
	book->writer->header->source = BOOK_SOURCE_SOCKET;
	assert(offer(&world, keeper, book, own));
	/* Nobody can be asked any more. */
	dead = child_new(&world, user, NULL);
	book = book_new(&world, user, dead);
	says = (struct link_offer){.pid = (uint32_t)dead,
				   .user = user,
				   .start_ticks = book->writer->header->start_ticks};
	{
		int pid_fd = pid_fd_of(dead);

		child_end(dead);
		assert(!offer_as(&world, keeper, book->fd, pid_fd, &says));
	}
	assert(close(keeper) == 0);
	world_close(&world);
}

UNIT(what_is_no_book_is_refused)
{
	struct testing_book *book;
	struct world world;
	int keeper, file;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, getuid(), NULL);
	book = book_new(&world, geteuid(), pid);
	keeper = link_begin(&world, getuid(), 0, 0);
	/* Not sealed; sealed, but empty; no memory file. */
	file = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert(file >= 0 && ftruncate(file, BOOK_SIZE_MIN) == 0);
	assert(!offer_as(&world, keeper, file, pid_fd_of(pid), NULL));
	assert(fcntl(file, F_ADD_SEALS,
		     F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) == 0);
	assert(!offer_as(&world, keeper, file, pid_fd_of(pid), NULL));
	assert(!offer_as(&world, keeper, world.listening, pid_fd_of(pid), NULL));
	/* Nothing at all. */
	{
		struct registry_counts counts;
		struct link_offer none = {0};

		give(&world, keeper, LINK_OFFER, &none, sizeof(none), NULL, 0);
		registry_counts(world.registry, &counts);
		assert(counts.refused == 4 && counts.processes == 0);
	}
	assert(offer(&world, keeper, book, pid));
	assert(close(file) == 0 && close(keeper) == 0);
	world_close(&world);
}

UNIT(of_the_dead_a_trusted_keeper_is_believed)
{
	struct link_offer says;
	struct testing_book *book;
	struct world world;
	int keeper, pid_fd;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, getuid(), NULL);
	book = book_new(&world, geteuid(), pid);
	pid_fd = pid_fd_of(pid);
	child_end(pid);
	keeper = link_begin(&world, getuid(), 0, 0);
	says = (struct link_offer){.pid = (uint32_t)pid,
				   .user = 4321,
				   .start_ticks = book->writer->header->start_ticks + 1000000};
	/* It started at another time than the process in the header; it has no number. */
	assert(!offer_as(&world, keeper, book->fd, dup(pid_fd),
			 &says)); /* NOLINT(android-cloexec-dup) */
	says.start_ticks = book->writer->header->start_ticks;
	says.pid = 0;
	assert(!offer_as(&world, keeper, book->fd, dup(pid_fd),
			 &says)); /* NOLINT(android-cloexec-dup) */
	says.pid = (uint32_t)pid;
	assert(offer_as(&world, keeper, book->fd, pid_fd, &says));
	assert(world.added->maker == 4321 && world.added->process.pid == (uint32_t)pid);
	assert(world.ended == 0);
	give_book(&world, keeper, LINK_CLOSED, world.added->id);
	assert(world.ended == 1 && close(keeper) == 0);
	world_close(&world);
}

UNIT(a_keeper_that_was_started_again_goes_on_in_a_new_book)
{
	struct link_offer says = {0};
	struct testing_book *again;
	struct world world;
	int keeper, next;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, getuid(), NULL);
	keeper = link_begin(&world, getuid(), 0, 0);
	assert(offer(&world, keeper, book_new(&world, geteuid(), pid), pid));
	says.old_device = world.added->id.device;
	says.old_inode = world.added->id.inode;
	next = link_begin(&world, getuid(), 0, 0);
	again = book_new(&world, geteuid(), pid);
	assert(offer_as(&world, next, again->fd, pid_fd_of(pid), &says));
	assert(world.replaced == 1 && world.ended == 0);
	assert(close(keeper) == 0);
	child_end(pid);
	settle(&world);
	assert(world.ended == 0 && close(next) == 0);
	settle(&world);
	assert(world.ended == 1);
	world_close(&world);
}

/* It would make what another keeper has written disappear. */
UNIT(a_user_does_not_replace_the_book_of_another_keeper)
{
	uid_t user = need_root(USER);
	struct link_offer says = {0};
	struct testing_book *forged;
	struct world world;
	int keeper, hostile;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, user, NULL);
	keeper = link_begin(&world, 0, 0, 0);
	assert(offer(&world, keeper, book_new(&world, 0, pid), pid));
	says.old_device = world.added->id.device;
	says.old_inode = world.added->id.inode;
	hostile = link_begin(&world, user, 0, 0);
	forged = book_new(&world, user, pid);
	assert(!offer_as(&world, hostile, forged->fd, pid_fd_of(pid), &says));
	assert(world.replaced == 0);
	/* Nor does it get hold of that book, or close it. */
	give_book(&world, hostile, LINK_CLOSED, world.added->id);
	child_end(pid);
	settle(&world);
	assert(world.ended == 0 && close(hostile) == 0 && close(keeper) == 0);
	world_close(&world);
}

UNIT(a_link_is_told_of_all_books_but_its_own)
{
	int keeper, reader, fds[2];
	struct link_process process;
	struct link_sync sync = {.number = 7};
	struct testing_book *book;
	struct link_book id;
	struct stat file;
	struct world world;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, getuid(), NULL);
	keeper = link_begin(&world, getuid(), LINK_WANT_BOOKS, 0);
	reader = link_begin(&world, getuid(), LINK_WANT_BOOKS, 0);
	book = book_new(&world, geteuid(), pid);
	assert(offer(&world, keeper, book, pid) && is_silent(&world, keeper));
	give(&world, reader, LINK_SYNC, &sync, sizeof(sync), NULL, 0);
	assert(take(&world, reader, &process, sizeof(process), fds) == LINK_BOOK);
	assert(process.pid == (uint32_t)pid && process.user == getuid());
	assert(process.source == BOOK_SOURCE_SOCKET && process.maker == getuid());
	assert(strcmp(process.comm, world.added->comm) == 0 && !(process.flags & LINK_IS_LEFT));
	assert(fstat(fds[0], &file) == 0 && file.st_ino == process.inode);
	assert((fcntl(fds[0], F_GETFL) & O_ACCMODE) == O_RDONLY);
	assert(syscall(SYS_pidfd_send_signal, fds[1], 0, NULL, 0) == 0);
	assert(close(fds[0]) == 0 && close(fds[1]) == 0);
	assert(take(&world, reader, &sync, sizeof(sync), NULL) == LINK_SYNCED && sync.number == 7);
	/* Its keeper has gone: whoever comes then is told that it is left, and by whom it can be continued. */
	assert(close(keeper) == 0);
	settle(&world);
	keeper = link_begin(&world, getuid(), 0, 0);
	assert(is_silent(&world, keeper));
	give(&world, keeper, LINK_HELLO, &(struct link_hello){.want = LINK_WANT_BOOKS},
	     sizeof(struct link_hello), NULL, 0);
	assert(take(&world, keeper, &process, sizeof(process), fds) == LINK_BOOK);
	assert(process.flags & LINK_IS_LEFT && process.pid == (uint32_t)pid);
	assert(close(fds[0]) == 0 && close(fds[1]) == 0);
	/* The same wish again is none. */
	give(&world, keeper, LINK_HELLO, &(struct link_hello){.want = LINK_WANT_BOOKS},
	     sizeof(struct link_hello), NULL, 0);
	assert(is_silent(&world, keeper));
	child_end(pid);
	assert(take(&world, reader, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(id.inode == process.inode && id.device == process.device);
	assert(take(&world, keeper, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(close(reader) == 0 && close(keeper) == 0);
	world_close(&world);
}

UNIT(what_is_replaced_has_ended_for_who_was_told_of_it)
{
	struct link_offer says = {0};
	struct link_process process;
	struct testing_book *again;
	int keeper, reader;
	struct link_book id;
	struct world world;
	pid_t pid;

	world_open(&world);
	pid = child_new(&world, getuid(), NULL);
	keeper = link_begin(&world, getuid(), 0, 0);
	reader = link_begin(&world, getuid(), LINK_WANT_BOOKS, 0);
	assert(offer(&world, keeper, book_new(&world, geteuid(), pid), pid));
	says.old_device = world.added->id.device;
	says.old_inode = world.added->id.inode;
	again = book_new(&world, geteuid(), pid);
	assert(offer_as(&world, keeper, again->fd, pid_fd_of(pid), &says));
	assert(take(&world, reader, &process, sizeof(process), NULL) == LINK_BOOK);
	assert(process.inode == says.old_inode);
	assert(take(&world, reader, &process, sizeof(process), NULL) == LINK_BOOK);
	assert(process.inode == world.added->id.inode && process.flags & LINK_IS_OLDER);
	assert(take(&world, reader, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(id.inode == says.old_inode && close(keeper) == 0 && close(reader) == 0);
	world_close(&world);
}

UNIT(a_user_is_told_of_what_it_may_see)
{
	uid_t user = need_root(USER), other = OTHER;
	struct link_process process;
	struct link_book id;
	int keeper, reader;
	struct world world;
	pid_t own, foreign;

	world_open(&world);
	own = child_new(&world, user, NULL);
	foreign = child_new(&world, other, NULL);
	keeper = link_begin(&world, 0, 0, 0);
	reader = link_begin(&world, user, LINK_WANT_ALL, 0);
	assert(offer(&world, keeper, book_new(&world, 0, foreign), foreign));
	assert(offer(&world, keeper, book_new(&world, 0, own), own));
	assert(take(&world, reader, &process, sizeof(process), NULL) == LINK_BOOK);
	assert(process.pid == (uint32_t)own && is_silent(&world, reader));
	child_end(foreign);
	child_end(own);
	settle(&world);
	assert(close(keeper) == 0);
	assert(take(&world, reader, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(id.inode == process.inode && is_silent(&world, reader));
	/* Lines are about all users. */
	assert(!links_print(world.links, (struct book_id){1, 2}, "x\n", 2));
	assert(close(reader) == 0);
	world_close(&world);
}

/* More packets than the socket takes; books that have ended meanwhile are left out. */
UNIT(a_reader_that_is_slow_is_told_everything_later)
{
	struct link_sync sync = {0};
	int keeper, reader;
	struct world world;
	uint64_t next = 0;

	world_open(&world);
	keeper = link_begin(&world, getuid(), 0, 0);
	reader = link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	for (uint64_t i = 0; i < 2000; i++) {
		sync.number = i;
		link_head_init(&sync.head, LINK_SYNC, sizeof(sync));
		assert(send(reader, &sync, sizeof(sync), 0) == sizeof(sync));
		settle(&world);
	}
	while (next < 2000) {
		assert(take(&world, reader, &sync, sizeof(sync), NULL) == LINK_SYNCED);
		assert(sync.number == next++);
	}
	assert(close(keeper) == 0 && close(reader) == 0);
	world_close(&world);
}

UNIT(lines_go_to_who_prints_them_once_and_whole)
{
	static char text[LINK_PACKET_MAX + 1000], got[LINK_PACKET_MAX + 1];
	struct link_book book = {.device = 3};
	struct book_id id = {.device = 3, .inode = 4};
	struct world world;
	int printer;
	size_t at;

	world_open(&world);
	assert(!links_print(world.links, id, "nobody\n", 7));
	printer = link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	assert(links_print(world.links, id, "one\ntwo\n", 8));
	assert(take(&world, printer, got, sizeof(got), NULL) == LINK_LINES);
	memcpy(&book, got, sizeof(book));
	assert(book.inode == 4 && book.device == 3 && book.head.size == sizeof(book) + 8);
	assert(memcmp(got + sizeof(book), "one\ntwo\n", 8) == 0);
	/* Longer than a packet: parted between two lines. */
	memset(text, 'x', sizeof(text));
	at = 40000;
	text[at - 1] = text[sizeof(text) - 1] = '\n';
	assert(links_print(world.links, id, text, sizeof(text)));
	assert(take(&world, printer, &book, sizeof(book), NULL) == LINK_LINES);
	assert(book.head.size == sizeof(book) + at);
	assert(take(&world, printer, &book, sizeof(book), NULL) == LINK_LINES);
	assert(book.head.size == sizeof(book) + sizeof(text) - at && is_silent(&world, printer));
	assert(close(printer) == 0);
	world_close(&world);
}

UNIT(lines_that_could_not_be_sent_are_given_back)
{
	static char text[60000];
	struct world world;
	int printer, sent = 0;

	world_open(&world);
	printer = link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	memset(text, '\n', sizeof(text));
	/* More than the socket takes. */
	for (; sent < 40; sent++)
		assert(links_print(world.links, (struct book_id){1, 1}, text, sizeof(text)));
	assert(!links_print(world.links, (struct book_id){1, 1}, text, LINK_QUEUE_TEXT_MAX));
	world_close(&world);
	assert(close(printer) == 0);
	/* Of a link that ends: */
	world_open(&world);
	printer = link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	while (links_print(world.links, (struct book_id){1, 1}, text, sizeof(text)))
		;
	world.unprinted[0] = '\0';
	assert(close(printer) == 0);
	world_close(&world);
}

UNIT(a_state_is_believed_of_who_is_trusted)
{
	struct link_state state = {.clients = 5, .path = "/run/old"};
	uid_t user = need_root(USER);
	struct world world;
	int keeper, hostile;

	world_open(&world);
	hostile = link_begin(&world, user, 0, 0);
	give(&world, hostile, LINK_STATE, &state, sizeof(state), NULL, 0);
	assert(!links_state(world.links) && world.states == 0);
	keeper = link_begin(&world, 0, 0, 0);
	assert(!links_state(world.links));
	memset(state.path, 'x', sizeof(state.path));
	give(&world, keeper, LINK_STATE, &state, sizeof(state), NULL, 0);
	assert(world.states == 1 && links_state(world.links)->clients == 5);
	assert(strlen(links_state(world.links)->path) == sizeof(state.path) - 1);
	assert(close(keeper) == 0);
	settle(&world);
	assert(world.states == 2 && !links_state(world.links) && close(hostile) == 0);
	world_close(&world);
}

UNIT(a_user_has_a_few_links_and_others_have_theirs)
{
	uid_t user = need_root(USER), other = OTHER;
	int fds[LINKS_PER_USER + 2];
	struct world world;

	world_open(&world);
	for (size_t i = 0; i < LINKS_PER_USER; i++)
		fds[i] = link_begin(&world, user, 0, 0);
	fds[LINKS_PER_USER] = link_begin(&world, user, 0, -EDQUOT);
	assert(is_closed(&world, fds[LINKS_PER_USER]) && quota_counted(QUOTA_LINKS) == 1);
	fds[LINKS_PER_USER + 1] = link_begin(&world, other, 0, 0);
	assert(close(fds[0]) == 0 && close(fds[LINKS_PER_USER]) == 0);
	settle(&world);
	/* One has gone: there is room again. */
	fds[0] = link_begin(&world, user, 0, 0);
	for (size_t i = 0; i < LINKS_PER_USER + 2; i++)
		assert(i == LINKS_PER_USER || close(fds[i]) == 0);
	world_close(&world);
}

UNIT(garbage_ends_the_link_and_what_is_not_known_does_not)
{
	struct link_head head;
	struct world world;
	int keeper;

	world_open(&world);
	keeper = link_begin(&world, getuid(), 0, 0);
	give(&world, keeper, 99, &head, sizeof(head), NULL, 0);
	give(&world, keeper, LINK_ENDED, &(struct link_book){.inode = 1}, sizeof(struct link_book),
	     NULL, 0); /* is ours to say */
	assert(is_silent(&world, keeper));
	head.size++;
	assert(send(keeper, &head, sizeof(head), 0) == sizeof(head));
	assert(is_closed(&world, keeper) && close(keeper) == 0);
	world_close(&world);
}

UNIT(a_queue_keeps_its_order_while_it_grows)
{
	struct link_queue queue = {0};
	struct link_item item;
	uint64_t in = 0, out = 0;

	/* Three in, two out: it begins anywhere when it grows. */
	for (int i = 0; i < 300; i++) {
		for (int k = 0; k < 3; k++) {
			item = (struct link_item){.kind = LINK_SYNCED, .number = in++};
			assert(link_queue_put(&queue, &item) == 0);
		}
		for (int k = 0; k < 2; k++)
			assert(link_queue_take(&queue, &item) == 0 && item.number == out++);
	}
	while (link_queue_take(&queue, &item) == 0)
		assert(item.number == out++);
	assert(in == out && queue.text == 0);
	for (size_t i = 0; i < LINK_QUEUE_MAX; i++)
		assert(link_queue_put(&queue, &item) == 0);
	item.text = strdup("taken");
	item.length = 5;
	assert(link_queue_put(&queue, &item) == -ENOBUFS && queue.text == 0);
	link_queue_deinit(&queue);
}
