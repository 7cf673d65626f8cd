/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Our end of the link to ttmemd (wire/link.h): offers the books that the server keeps, and enters those that
 * ttmemd knows into our registry, so that questions are answered from all of them. Without a ttmemd it is
 * tried again and again, and nothing here waits for it; another one gets everything from the start.
 *
 * Lives in the loop's thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/book-id.h"

struct legacy_link;
struct legacy_server;
struct link_state;
struct loop;
struct registry;
struct scan_book;
struct tracked;

struct legacy_link_config {
	struct loop *loop;
	struct registry *registry;
	const char *path; /* ttmemd's native socket */
	bool wants_lines; /* about processes that have ended: we print them */
	/*
	 * An old client's book that was kept by an earlier one of us. Takes book and pidfd (-1 = the process has
	 * ended).
	 */
	void *context;
	void (*left)(void *context, struct scan_book *book, int pid_fd);
	/* ttmemd is stopped. */
	void (*stop)(void *context);
};

/* 0 or a negative errno. */
int legacy_link_new(struct legacy_link **ret_link, const struct legacy_link_config *config);
struct legacy_link *legacy_link_free(struct legacy_link *link);

/* From now on its books are offered, and it is told what ttmemd says. */
void legacy_link_serve(struct legacy_link *link, struct legacy_server *server);

bool legacy_link_is_connected(const struct legacy_link *link);

/* Whether a ttmemd has told everything that it knew when we connected, or has taken too long for that. */
bool legacy_link_is_settled(const struct legacy_link *link);

/* Offers a book, or closes it; as legacy_keeping. @context: the link. */
void legacy_link_kept(void *context, const struct tracked *tracked, struct book_id old);
void legacy_link_closed(void *context, const struct tracked *tracked, struct book_id old);
bool legacy_link_sync(void *context);

void legacy_link_report(void *context, const char *text, size_t length);

/* What ttmemd shows of us; sent if it has changed. The head need not be set. */
void legacy_link_state(struct legacy_link *link, const struct link_state *state);
