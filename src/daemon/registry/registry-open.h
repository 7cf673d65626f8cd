/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Opens a book that somebody else held: only the pid and start time of its owner are known. */

#include <stdint.h>

#include "base/process-id.h"
#include "source/proc/namespaces.h"

struct proc;
struct scan_book;
struct tracked;

/* Takes the fd in any case. 0 or a negative errno; -EBADMSG if it is not a book. */
int registry_open_consume(const struct proc *proc, int fd, struct process_id process,
			  struct scan_book **ret_book);

/*
 * Where the owner of a book is. Of one that has ended nobody knows: it is taken to have been in our
 * namespaces if its book says so, because most are, and else to have been nowhere: only those who
 * see everything see it.
 */
void registry_locate(const struct namespaces *namespaces, const struct scan_book *book,
		     char ret_text[NAMESPACES_SIZE]);

/* For whose memory a new book counts, as long as its owner lives. */
void registry_find_memory(const struct proc *proc, struct tracked *tracked);
