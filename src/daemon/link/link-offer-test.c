/* SPDX-License-Identifier: Apache-2.0 */

/* Offers with real processes and users: what is taken, and every reason to refuse one. */

#include "daemon/link/link-offer.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "daemon/link/testing/links-testing.h"
#include "daemon/registry/registry.h"
#include "daemon/registry/tracked.h"
#include "source/books/scan.h"

UNIT(a_kept_book_is_its_processs)
{
	struct links_testing world;
	int keeper;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, getuid(), NULL);
	keeper = links_testing_link_begin(&world, getuid(), LINK_WANT_BOOKS, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, geteuid(), pid),
				   pid));
	assert(world.added->process.pid == (uint32_t)pid && world.added->user == getuid());
	assert(world.added->maker == getuid() && world.added->source == BOOK_SOURCE_SOCKET);
	assert((fcntl(world.added->book->file.fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
	/* Its end takes both. */
	links_testing_child_end(pid);
	links_testing_settle(&world);
	assert(world.ended == 0);
	links_testing_give_book(&world, keeper, LINK_CLOSED, world.added->id);
	assert(world.ended == 1 && links_testing_is_silent(&world, keeper) && close(keeper) == 0);
	links_testing_close(&world);
}

UNIT(the_books_of_a_keeper_that_has_gone_end_with_their_processes)
{
	struct links_testing world;
	pid_t first, second;
	int keeper;

	links_testing_open(&world);
	first = links_testing_child_new(&world, getuid(), NULL);
	second = links_testing_child_new(&world, getuid(), NULL);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, geteuid(), first),
				   first));
	assert(links_testing_offer(&world, keeper,
				   links_testing_book_new(&world, geteuid(), second), second));
	links_testing_child_end(first);
	links_testing_settle(&world);
	assert(world.ended == 0);
	links_testing_lose(&world, keeper);
	assert(world.ended == 1);
	links_testing_child_end(second);
	links_testing_settle(&world);
	assert(world.ended == 2);
	links_testing_close(&world);
}

/* Of root: it keeps books for all users; they see and pay for what is theirs. */
UNIT(a_trusted_keeper_keeps_books_for_all_users)
{
	uid_t user = links_testing_need_root(LINKS_TESTING_USER);
	struct links_testing world;
	int keeper;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, user, NULL);
	keeper = links_testing_link_begin(&world, 0, 0, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, 0, pid), pid));
	assert(world.added->maker == user && world.added->user == user);
	assert(world.added->book->uid == user); /* in whose share it is */
	assert(close(keeper) == 0);
	links_testing_close(&world);
}

UNIT(a_user_keeps_books_for_processes_of_its_own)
{
	uid_t user = links_testing_need_root(LINKS_TESTING_USER);
	struct links_testing world;
	int keeper;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, user, NULL);
	keeper = links_testing_link_begin(&world, user, 0, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, user, pid), pid));
	assert(world.added->maker == user && close(keeper) == 0);
	links_testing_close(&world);
}

/* Everything else is right each time, and without what is wrong the offer is taken. */
UNIT(what_a_user_may_not_offer_is_refused)
{
	uid_t user = links_testing_need_root(LINKS_TESTING_USER), other = LINKS_TESTING_OTHER;
	pid_t own, foreign, dead;
	struct testing_book *book;
	struct links_testing world;
	struct link_offer says = {0};
	int keeper;

	links_testing_open(&world);
	own = links_testing_child_new(&world, user, NULL);
	foreign = links_testing_child_new(&world, other, NULL);
	keeper = links_testing_link_begin(&world, user, 0, 0);
	/* A process of another user; the file of another user. */
	assert(!links_testing_offer(&world, keeper, links_testing_book_new(&world, user, foreign),
				    foreign));
	assert(!links_testing_offer(&world, keeper, links_testing_book_new(&world, other, own),
				    own));
	assert(!links_testing_offer(&world, keeper, links_testing_book_new(&world, 0, own), own));
	/* A pidfd that is not of the process in the header; none; what is no pidfd. */
	book = links_testing_book_new(&world, user, own);
	assert(!links_testing_offer(&world, keeper, book, foreign));
	assert(!links_testing_offer(&world, keeper, book, getpid()));
	says = (struct link_offer){.pid = (uint32_t)own,
				   .user = user,
				   .start_ticks = book->writer->header->start_ticks};
	assert(!links_testing_offer_as(&world, keeper, book->fd, -1, &says));
	assert(!links_testing_offer_as(&world, keeper, book->fd, eventfd(0, EFD_CLOEXEC), &says));
	/* Another pid namespace than its process's. */
	book->writer->header->pid_namespace++;
	assert(!links_testing_offer(&world, keeper, book, own));
	book->writer->header->pid_namespace--;
	/* Not kept for anybody. */
	book->writer->header->source = BOOK_SOURCE_LIBRARY;
	assert(!links_testing_offer(&world, keeper, book, own));
	book->writer->header->source = BOOK_SOURCE_SOCKET;
	assert(links_testing_offer(&world, keeper, book, own));
	/* Nobody can be asked any more. */
	dead = links_testing_child_new(&world, user, NULL);
	book = links_testing_book_new(&world, user, dead);
	says = (struct link_offer){.pid = (uint32_t)dead,
				   .user = user,
				   .start_ticks = book->writer->header->start_ticks};
	{
		int pid_fd = links_testing_pid_fd_of(dead);

		links_testing_child_end(dead);
		assert(!links_testing_offer_as(&world, keeper, book->fd, pid_fd, &says));
	}
	assert(close(keeper) == 0);
	links_testing_close(&world);
}

UNIT(what_is_no_book_is_refused)
{
	struct testing_book *book;
	struct links_testing world;
	int keeper, file;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, getuid(), NULL);
	book = links_testing_book_new(&world, geteuid(), pid);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	/* Not sealed; sealed, but empty; no memory file. */
	file = memfd_create("ttmem-book", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert(file >= 0 && ftruncate(file, BOOK_SIZE_MIN) == 0);
	assert(!links_testing_offer_as(&world, keeper, file, links_testing_pid_fd_of(pid), NULL));
	assert(fcntl(file, F_ADD_SEALS,
		     F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) == 0);
	assert(!links_testing_offer_as(&world, keeper, file, links_testing_pid_fd_of(pid), NULL));
	assert(!links_testing_offer_as(&world, keeper, world.listening,
				       links_testing_pid_fd_of(pid), NULL));
	/* Nothing at all. */
	{
		struct registry_counts counts;
		struct link_offer none = {0};

		links_testing_give(&world, keeper, LINK_OFFER, &none, sizeof(none));
		registry_counts(world.registry, &counts);
		assert(counts.refused == 4 && counts.processes == 0);
	}
	assert(links_testing_offer(&world, keeper, book, pid));
	assert(close(file) == 0 && close(keeper) == 0);
	links_testing_close(&world);
}

UNIT(of_the_dead_a_trusted_keeper_is_believed)
{
	struct link_offer says;
	struct testing_book *book;
	struct links_testing world;
	int keeper, pid_fd;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, getuid(), NULL);
	book = links_testing_book_new(&world, geteuid(), pid);
	pid_fd = links_testing_pid_fd_of(pid);
	links_testing_child_end(pid);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	says = (struct link_offer){.pid = (uint32_t)pid,
				   .user = 4321,
				   .start_ticks = book->writer->header->start_ticks + 1000000};
	/* It started at another time than the process in the header; it has no number. */
	assert(!links_testing_offer_as(&world, keeper, book->fd, fcntl(pid_fd, F_DUPFD_CLOEXEC, 3),
				       &says)); /* NOLINT(android-cloexec-dup) */
	says.start_ticks = book->writer->header->start_ticks;
	says.pid = 0;
	assert(!links_testing_offer_as(&world, keeper, book->fd, fcntl(pid_fd, F_DUPFD_CLOEXEC, 3),
				       &says)); /* NOLINT(android-cloexec-dup) */
	says.pid = (uint32_t)pid;
	assert(links_testing_offer_as(&world, keeper, book->fd, pid_fd, &says));
	assert(world.added->maker == 4321 && world.added->process.pid == (uint32_t)pid);
	assert(world.ended == 0);
	links_testing_give_book(&world, keeper, LINK_CLOSED, world.added->id);
	assert(world.ended == 1 && close(keeper) == 0);
	links_testing_close(&world);
}

UNIT(a_keeper_that_was_started_again_goes_on_in_a_new_book)
{
	struct link_offer says = {0};
	struct testing_book *again;
	struct links_testing world;
	int keeper, next;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, getuid(), NULL);
	keeper = links_testing_link_begin(&world, getuid(), 0, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, geteuid(), pid),
				   pid));
	says.old_device = world.added->id.device;
	says.old_inode = world.added->id.inode;
	next = links_testing_link_begin(&world, getuid(), 0, 0);
	again = links_testing_book_new(&world, geteuid(), pid);
	assert(links_testing_offer_as(&world, next, again->fd, links_testing_pid_fd_of(pid),
				      &says));
	assert(world.replaced == 1 && world.ended == 0);
	assert(close(keeper) == 0);
	links_testing_child_end(pid);
	links_testing_settle(&world);
	assert(world.ended == 0);
	links_testing_lose(&world, next);
	assert(world.ended == 1);
	links_testing_close(&world);
}

/* It would make what another keeper has written disappear. */
UNIT(a_user_does_not_replace_the_book_of_another_keeper)
{
	uid_t user = links_testing_need_root(LINKS_TESTING_USER);
	struct link_offer says = {0};
	struct testing_book *forged;
	struct links_testing world;
	int keeper, hostile;
	pid_t pid;

	links_testing_open(&world);
	pid = links_testing_child_new(&world, user, NULL);
	keeper = links_testing_link_begin(&world, 0, 0, 0);
	assert(links_testing_offer(&world, keeper, links_testing_book_new(&world, 0, pid), pid));
	says.old_device = world.added->id.device;
	says.old_inode = world.added->id.inode;
	hostile = links_testing_link_begin(&world, user, 0, 0);
	forged = links_testing_book_new(&world, user, pid);
	assert(!links_testing_offer_as(&world, hostile, forged->fd, links_testing_pid_fd_of(pid),
				       &says));
	assert(world.replaced == 0);
	/* Nor does it get hold of that book, or close it. */
	links_testing_give_book(&world, hostile, LINK_CLOSED, world.added->id);
	links_testing_child_end(pid);
	links_testing_settle(&world);
	assert(world.ended == 0 && close(hostile) == 0 && close(keeper) == 0);
	links_testing_close(&world);
}
