/* SPDX-License-Identifier: Apache-2.0 */

/* What a program is told over a link, what it may say, and how many there are. */

#include "daemon/link/links.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/quota.h"
#include "base/testing/unit.h"
#include "base/threads/loop.h"
#include "daemon/link/link-queue.h"
#include "daemon/link/testing/links-testing.h"
#include "daemon/registry/tracked.h"

UNIT(a_link_is_told_of_all_books_but_its_own)
{
	int keeper, reader, fds[2];
	struct link_process process;
	struct link_sync sync = {.number = 7};
	struct testing_book *book;
	struct link_book id;
	struct stat file;
	struct links_testing world;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, getuid(), NULL);
	keeper = links_testing_link_begin(&world, getuid(), LINK_WANT_BOOKS, 0);
	reader = links_testing_link_begin(&world, getuid(), LINK_WANT_BOOKS, 0);
	book = links_testing_book_new(&world, geteuid(), pid);
	assert(links_testing_offer(&world, keeper, book, pid) &&
	       links_testing_is_silent(&world, keeper));
	links_testing_give(&world, reader, LINK_SYNC, &sync, sizeof(sync));
	assert(links_testing_take(&world, reader, &process, sizeof(process), fds) == LINK_BOOK);
	assert(process.pid == (uint32_t)pid && process.user == getuid());
	assert(process.source == BOOK_SOURCE_SOCKET && process.maker == getuid());
	assert(strcmp(process.comm, world.added->comm) == 0 && !(process.flags & LINK_IS_LEFT));
	assert(fstat(fds[0], &file) == 0 && file.st_ino == process.inode);
	assert((fcntl(fds[0], F_GETFL) & O_ACCMODE) == O_RDONLY);
	assert(syscall(SYS_pidfd_send_signal, fds[1], 0, NULL, 0) == 0);
	assert(close(fds[0]) == 0 && close(fds[1]) == 0);
	assert(links_testing_take(&world, reader, &sync, sizeof(sync), NULL) == LINK_SYNCED &&
	       sync.number == 7);
	/* Its keeper has gone: whoever comes then is told that it is left, and by whom it can be continued. */
	links_testing_lose(&world, keeper);
	links_testing_settle(&world);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	assert(links_testing_is_silent(&world, keeper));
	links_testing_give(&world, keeper, LINK_HELLO,
			   &(struct link_hello){.want = LINK_WANT_BOOKS},
			   sizeof(struct link_hello));
	assert(links_testing_take(&world, keeper, &process, sizeof(process), fds) == LINK_BOOK);
	assert(process.flags & LINK_IS_LEFT && process.pid == (uint32_t)pid);
	assert(close(fds[0]) == 0 && close(fds[1]) == 0);
	/* The same wish again is none. */
	links_testing_give(&world, keeper, LINK_HELLO,
			   &(struct link_hello){.want = LINK_WANT_BOOKS},
			   sizeof(struct link_hello));
	assert(links_testing_is_silent(&world, keeper));
	links_testing_child_end(pid);
	assert(links_testing_take(&world, reader, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(id.inode == process.inode && id.device == process.device);
	assert(links_testing_take(&world, keeper, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(close(reader) == 0 && close(keeper) == 0);
	links_testing_close(&world);
}

UNIT(what_is_replaced_has_ended_for_who_was_told_of_it)
{
	struct link_offer says = {0};
	struct link_process process;
	struct testing_book *again;
	int keeper, reader;
	struct link_book id;
	struct links_testing world;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, getuid(), NULL);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	reader = links_testing_link_begin(&world, getuid(), LINK_WANT_BOOKS, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, geteuid(), pid),
				   pid));
	says.old_device = world.added->id.device;
	says.old_inode = world.added->id.inode;
	again = links_testing_book_new(&world, geteuid(), pid);
	assert(links_testing_offer_as(&world, keeper, again->fd, links_testing_pid_fd_of(pid),
				      &says));
	assert(links_testing_take(&world, reader, &process, sizeof(process), NULL) == LINK_BOOK);
	assert(process.inode == says.old_inode);
	assert(links_testing_take(&world, reader, &process, sizeof(process), NULL) == LINK_BOOK);
	assert(process.inode == world.added->id.inode && process.flags == 0);
	assert(links_testing_take(&world, reader, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(id.inode == says.old_inode && close(keeper) == 0 && close(reader) == 0);
	links_testing_close(&world);
}

UNIT(a_user_is_told_of_what_it_may_see)
{
	uid_t user = links_testing_need_root(LINKS_TESTING_USER), other = LINKS_TESTING_OTHER;
	struct link_process process;
	struct link_book id;
	int keeper, reader;
	struct links_testing world;
	pid_t own, foreign;

	links_testing_open(&world);
	own = links_testing_child_new(&world, user, NULL);
	foreign = links_testing_child_new(&world, other, NULL);
	keeper = links_testing_link_begin(&world, 0, 0, 0);
	reader = links_testing_link_begin(&world, user, LINK_WANT_ALL, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, 0, foreign),
				   foreign));
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, 0, own), own));
	assert(links_testing_take(&world, reader, &process, sizeof(process), NULL) == LINK_BOOK);
	assert(process.pid == (uint32_t)own && links_testing_is_silent(&world, reader));
	links_testing_child_end(foreign);
	links_testing_child_end(own);
	links_testing_settle(&world);
	links_testing_lose(&world, keeper);
	assert(links_testing_take(&world, reader, &id, sizeof(id), NULL) == LINK_ENDED);
	assert(id.inode == process.inode && links_testing_is_silent(&world, reader));
	/* Lines are about all users. */
	assert(!links_print(world.links, (struct book_id){1, 2}, "x\n", 2));
	assert(close(reader) == 0);
	links_testing_close(&world);
}

/* More packets than the socket takes; books that have ended meanwhile are left out. */
UNIT(a_reader_that_is_slow_is_told_everything_later)
{
	struct link_sync sync = {0};
	int keeper, reader;
	struct links_testing world;
	uint64_t next = 0;

	links_testing_open(&world);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	reader = links_testing_link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	for (uint64_t i = 0; i < 2000; i++) {
		sync.number = i;
		link_head_init(&sync.head, LINK_SYNC, sizeof(sync));
		assert(send(reader, &sync, sizeof(sync), 0) == sizeof(sync));
		links_testing_settle(&world);
	}
	while (next < 2000) {
		assert(links_testing_take(&world, reader, &sync, sizeof(sync), NULL) ==
		       LINK_SYNCED);
		assert(sync.number == next++);
	}
	assert(close(keeper) == 0 && close(reader) == 0);
	links_testing_close(&world);
}

UNIT(lines_go_to_who_prints_them_once_and_whole)
{
	static char text[LINK_PACKET_MAX + 1000], got[LINK_PACKET_MAX + 1];
	struct link_book book = {.device = 3};
	struct book_id id = {.device = 3, .inode = 4};
	struct links_testing world;
	int printer;
	size_t at;

	links_testing_open(&world);
	assert(!links_print(world.links, id, "nobody\n", 7));
	printer = links_testing_link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	assert(links_print(world.links, id, "one\ntwo\n", 8));
	assert(links_testing_take(&world, printer, got, sizeof(got), NULL) == LINK_LINES);
	memcpy(&book, got, sizeof(book));
	assert(book.inode == 4 && book.device == 3 && book.head.size == sizeof(book) + 8);
	assert(memcmp(got + sizeof(book), "one\ntwo\n", 8) == 0);
	/* Longer than a packet: parted between two lines. */
	memset(text, 'x', sizeof(text));
	at = 40000;
	text[at - 1] = text[sizeof(text) - 1] = '\n';
	assert(links_print(world.links, id, text, sizeof(text)));
	assert(links_testing_take(&world, printer, &book, sizeof(book), NULL) == LINK_LINES);
	assert(book.head.size == sizeof(book) + at);
	assert(links_testing_take(&world, printer, &book, sizeof(book), NULL) == LINK_LINES);
	assert(book.head.size == sizeof(book) + sizeof(text) - at &&
	       links_testing_is_silent(&world, printer));
	assert(close(printer) == 0);
	links_testing_close(&world);
}

UNIT(lines_that_could_not_be_sent_are_given_back)
{
	static const struct book_id book = {1, 1};
	static char text[60000];
	struct links_testing world;
	size_t sent = 0, read = 0;
	int printer;

	links_testing_open(&world);
	printer = links_testing_link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	memset(text, '\n', sizeof(text));
	while (links_print(world.links, book, text, sizeof(text)))
		sent += sizeof(text);
	/* So much waits: the caller prints what is more. */
	assert(sent > LINK_QUEUE_TEXT_MAX - sizeof(text));
	/* Those that the socket has taken can be read; one more was on its way. */
	while (!links_testing_is_silent(&world, printer) && read < 5 * sizeof(text)) {
		struct link_book packet;

		assert(links_testing_take(&world, printer, &packet, sizeof(packet), NULL) ==
		       LINK_LINES);
		read += packet.head.size - sizeof(packet);
	}
	assert(read == 5 * sizeof(text) && world.unprinted == 0 && close(printer) == 0);
	while (world.unprinted == 0)
		assert(loop_turn(world.loop, 10) == 0);
	assert(world.unprinted % sizeof(text) == 0 && world.unprinted <= sent - read);
	assert(world.unprinted > sent - read - 20 * sizeof(text));
	assert(!links_print(world.links, book, text, sizeof(text)));
	links_testing_close(&world);
}

UNIT(a_program_that_reads_nothing_prints_nothing)
{
	static const struct book_id book = {1, 1};
	struct link_sync sync = {0};
	struct links_testing world;
	int printer;

	links_testing_open(&world);
	printer = links_testing_link_begin(&world, getuid(), LINK_WANT_LINES, 0);
	link_head_init(&sync.head, LINK_SYNC, sizeof(sync));
	while (links_print(world.links, book, "x\n", 2)) {
		while (send(printer, &sync, sizeof(sync), MSG_DONTWAIT) == sizeof(sync))
			;
		assert(loop_turn(world.loop, 0) == 0);
	}
	/* It was too slow, or its queue is full; either way the caller prints what comes now. */
	links_testing_settle(&world);
	assert(!links_print(world.links, book, "x\n", 2) && close(printer) == 0);
	links_testing_close(&world);
}

UNIT(a_state_is_believed_of_who_is_trusted)
{
	struct link_state state = {.clients = 5, .path = "/run/old"};
	uid_t user = links_testing_need_root(LINKS_TESTING_USER);
	struct links_testing world;
	int keeper, hostile;

	links_testing_open(&world);
	hostile = links_testing_link_begin(&world, user, 0, 0);
	links_testing_give(&world, hostile, LINK_STATE, &state, sizeof(state));
	assert(!links_state(world.links) && world.states == 0);
	keeper = links_testing_link_begin(&world, 0, 0, 0);
	assert(!links_state(world.links));
	memset(state.path, 'x', sizeof(state.path));
	links_testing_give(&world, keeper, LINK_STATE, &state, sizeof(state));
	assert(world.states == 1 && links_state(world.links)->clients == 5);
	assert(strlen(links_state(world.links)->path) == sizeof(state.path) - 1);
	assert(close(keeper) == 0);
	links_testing_settle(&world);
	assert(world.states == 2 && !links_state(world.links) && close(hostile) == 0);
	links_testing_close(&world);
}

UNIT(a_report_is_asked_of_who_has_it_and_believed_of_who_is_trusted)
{
	struct link_state state = {.has_history = 1, .path = "/run/old"};
	struct {
		struct link_sync head;
		char text[8];
	} part = {.head.number = LINKS_TESTING_REPORT, .text = "report"};
	uid_t user = links_testing_need_root(LINKS_TESTING_USER);
	struct links_testing world;
	struct link_sync ask;
	int keeper, hostile;

	links_testing_open(&world);
	hostile = links_testing_link_begin(&world, user, 0, 0);
	links_testing_give(&world, hostile, LINK_STATE, &state, sizeof(state));
	assert(!links_ask(world.links, LINKS_TESTING_REPORT));
	keeper = links_testing_link_begin(&world, 0, 0, 0);
	links_testing_give(&world, keeper, LINK_STATE, &state, sizeof(state));
	assert(links_ask(world.links, LINKS_TESTING_REPORT));
	assert(links_testing_take(&world, keeper, &ask, sizeof(ask), NULL) == LINK_ASK);
	assert(ask.number == LINKS_TESTING_REPORT);
	links_testing_give(&world, hostile, LINK_REPORT, &part, sizeof(part));
	assert(world.reported == 0);
	links_testing_give(&world, keeper, LINK_REPORT, &part, sizeof(part));
	links_testing_give(&world, keeper, LINK_REPORT, &part, sizeof(part.head));
	assert(world.reported == sizeof(part.text) && world.reports == 1);
	assert(close(keeper) == 0 && close(hostile) == 0);
	links_testing_close(&world);
}

UNIT(a_user_has_a_few_links_and_others_have_theirs)
{
	uid_t user = links_testing_need_root(LINKS_TESTING_USER), other = LINKS_TESTING_OTHER;
	int fds[LINKS_PER_USER + 2];
	struct links_testing world;

	links_testing_open(&world);
	for (size_t i = 0; i < LINKS_PER_USER; i++)
		fds[i] = links_testing_link_begin(&world, user, 0, 0);
	fds[LINKS_PER_USER] = links_testing_link_begin(&world, user, 0, -EDQUOT);
	assert(links_testing_is_closed(&world, fds[LINKS_PER_USER]) &&
	       quota_counted(QUOTA_LINKS) == 1);
	fds[LINKS_PER_USER + 1] = links_testing_link_begin(&world, other, 0, 0);
	assert(close(fds[0]) == 0 && close(fds[LINKS_PER_USER]) == 0);
	links_testing_settle(&world);
	/* One has gone: there is room again. */
	fds[0] = links_testing_link_begin(&world, user, 0, 0);
	for (size_t i = 0; i < LINKS_PER_USER + 2; i++)
		assert(i == LINKS_PER_USER || close(fds[i]) == 0);
	links_testing_close(&world);
}

UNIT(garbage_ends_the_link_and_what_is_not_known_does_not)
{
	struct link_head head;
	struct links_testing world;
	int keeper;

	links_testing_open(&world);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	links_testing_give(&world, keeper, 99, &head, sizeof(head));
	links_testing_give(&world, keeper, LINK_ENDED, &(struct link_book){.inode = 1},
			   sizeof(struct link_book)); /* is ours to say */
	assert(links_testing_is_silent(&world, keeper));
	head.size++;
	assert(send(keeper, &head, sizeof(head), 0) == sizeof(head));
	assert(links_testing_is_closed(&world, keeper) && close(keeper) == 0);
	links_testing_close(&world);
}
