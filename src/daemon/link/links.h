/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Links with programs that keep books for processes (wire/link.h): what they offer goes to the registry,
 * and what the registry knows goes to those who want it, as far as they may see it. A program has to be in
 * the daemon's own user and pid namespace, where users and pids have the numbers that the daemon knows.
 *
 * Lives in the loop's thread. Freed before the registry, whose books then stay as they are: the next daemon
 * hears of their ends.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/book-id.h"

struct accept_peer;
struct access;
struct link_state;
struct links;
struct loop;
struct registry;
struct tracked;

struct links_config {
	struct loop *loop;
	struct registry *registry;
	const struct access *access;
	void *context;
	/* What links_state() returns has changed. */
	void (*state)(void *context);
	/* A link has ended that was to print this: text for the log. */
	void (*unprinted)(void *context, const char *text, size_t length);
	/* A part of the report that links_ask() asked for; length 0 = that was all, or nobody has one any more. */
	void (*report)(void *context, uint64_t number, const char *text, size_t length);
};

int links_new(struct links **ret_links, const struct links_config *config);
struct links *links_free(struct links *links);

/* The peer has sent LINK_HELLO and @wants LINK_WANT_...; takes it in any case. 0 or a negative errno. */
int links_add_consume(struct links *links, struct accept_peer *peer, uint32_t want);

/* Of the registry: a book has been added; its process has ended, or another book takes its place. NULL is fine. */
void links_added(struct links *links, const struct tracked *tracked);
void links_ended(struct links *links, const struct tracked *tracked);

/*
 * Has somebody else print lines about the process of a book, each with its newline. False: nobody does, so
 * the caller does.
 */
bool links_print(struct links *links, struct book_id book, const char *text, size_t length);

/* Asks who has the history of buffers for its report. False: nobody has it. */
bool links_ask(struct links *links, uint64_t number);

/* Tells all of them that the daemon is stopped. */
void links_stop(struct links *links);

/* What a program that is trusted has said of itself; NULL = there is none. */
const struct link_state *links_state(const struct links *links);
