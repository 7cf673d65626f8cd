/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the tests of links: links with a registry, and programs of any user on the other end, with real
 * processes and books. Helpers assert.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "book/testing/book-testing.h"
#include "daemon/link/links.h"
#include "daemon/registry/access.h"
#include "wire/link.h"

struct loop;
struct registry;
struct tracked;
struct worker;

#define LINKS_TESTING_USER 12345
#define LINKS_TESTING_OTHER 12346
#define LINKS_TESTING_BOOKS 8
#define LINKS_TESTING_REPORT UINT64_C(7) /* the number that is asked for */

struct links_testing {
	struct loop *loop;
	struct worker *work;
	struct registry *registry;
	struct access access;
	struct links *links;
	int listening;
	struct testing_book books[LINKS_TESTING_BOOKS];
	size_t book_count;
	pid_t children[16];
	size_t child_count;

	/* What was heard of the registry and of the links. */
	const struct tracked *added; /* the last one */
	unsigned int ended, replaced, states;
	size_t unprinted; /* bytes */
	size_t reported;  /* likewise; and how many whole reports */
	unsigned int reports;
};

void links_testing_open(struct links_testing *world);
void links_testing_close(struct links_testing *world);

/* Returns @user, unless nobody can be become. */
uid_t links_testing_need_root(uid_t user);

/* A process of that user that waits to be killed. @ret_fd: it has connected; NULL = not to */
pid_t links_testing_child_new(struct links_testing *world, uid_t user, int *ret_fd);
void links_testing_child_end(pid_t pid);
int links_testing_pid_fd_of(pid_t pid);

/* A program of that user that says hello; @expected of links_add_consume(). Returns its end. */
int links_testing_link_begin(struct links_testing *world, uid_t user, uint32_t want, int expected);

/* Handles what is there. */
void links_testing_settle(struct links_testing *world);

/* The keeper is gone, and does not come back in time. */
void links_testing_lose(struct links_testing *world, int keeper);

/* Sends a packet, whose head is set here, and settles. */
void links_testing_give(struct links_testing *world, int fd, enum link_kind kind, void *packet,
			size_t size);
void links_testing_give_book(struct links_testing *world, int fd, enum link_kind kind,
			     struct book_id id);

/*
 * The next packet: its kind, or -EPIPE at the end. @ret: the first @size bytes of it. @ret_fds: NULL = not
 * wanted.
 */
int links_testing_take(struct links_testing *world, int fd, void *ret, size_t size, int ret_fds[2]);
bool links_testing_is_closed(struct links_testing *world, int fd);
bool links_testing_is_silent(struct links_testing *world, int fd);

/* A book about process @pid, in a file of @user, as a keeper would make it. */
struct testing_book *links_testing_book_new(struct links_testing *world, uid_t user, pid_t pid);

/* Offers a book; whether it was taken. Takes the pidfd, -1 = none. @what may be NULL. */
bool links_testing_offer_as(struct links_testing *world, int fd, int file, int pid_fd,
			    const struct link_offer *what);
bool links_testing_offer(struct links_testing *world, int fd, const struct testing_book *book,
			 pid_t pid);
