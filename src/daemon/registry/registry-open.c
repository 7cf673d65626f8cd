/* SPDX-License-Identifier: Apache-2.0 */

/* Verifies the book and finds its owner in /proc, or in the book if the owner is gone. */

#include "daemon/registry/registry-open.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/registry/tracked.h"
#include "source/books/scan.h"
#include "source/books/verify-book.h"
#include "source/proc/proc.h"

/* Who made the file, or whom root or we made it for. Anybody can claim in their own book that it was so. */
static uint32_t open_user(const struct scan_book *book)
{
	const struct book_header *header = &book->reader.header;

	return header->source == BOOK_SOURCE_SOCKET && (book->uid == 0 || book->uid == geteuid())
		       ? header->uid
		       : book->uid;
}

int registry_open_consume(const struct proc *proc, int fd, struct process_id process,
			  struct scan_book **ret_book)
{
	CLEANUP_CLOSE int owned = fd;
	struct scan_book *book;
	int r = verify_book_check(owned);

	if (r != 0)
		return r < 0 ? r : -EBADMSG;
	r = scan_book_new_consume(&book, cleanup_steal_fd(&owned));
	if (r != 0)
		return r < 0 ? r : -EBADMSG;
	if (proc_read(proc, process.pid, &book->owner) == 0 &&
	    process_id_equal(book->owner.id, process)) {
		proc_container(proc, process.pid, book->container);
		book->alive = !proc_is_over(proc, &book->owner);
	} else {
		book->owner = (struct proc_facts){
			.id = process,
			.ns_pid = book->reader.header.pid,
			.real_uid = open_user(book),
			.saved_uid = open_user(book),
		};
		memcpy(book->owner.comm, book->reader.header.comm,
		       sizeof(book->reader.header.comm));
	}
	*ret_book = book;
	return 0;
}

void registry_locate(const struct namespaces *namespaces, const struct scan_book *book,
		     char ret_text[NAMESPACES_SIZE])
{
	const struct proc *proc = &namespaces->proc;
	struct process_id owner = book->owner.id;
	bool is_there = owner.start_ticks && proc_is_there(proc, owner);

	if (is_there)
		namespaces_read(namespaces, owner.pid, ret_text);
	/* What was read is its own only if it is still there. */
	if (is_there && proc_is_there(proc, owner))
		return;
	memcpy(ret_text, NAMESPACES_UNKNOWN, sizeof(NAMESPACES_UNKNOWN));
	if (book->reader.header.pid_namespace == namespaces->pid)
		*ret_text = '\0';
}

void registry_find_memory(const struct proc *proc, struct tracked *tracked)
{
	/* The memory of an old client's book is our own. */
	if (tracked->source == BOOK_SOURCE_SOCKET)
		return;
	tracked->memory_path = proc_memory_path(proc, tracked->process.pid, &tracked->memory_is_v1);
	if (!tracked->memory_path || proc_is_there(proc, tracked->process))
		return;
	free(tracked->memory_path); /* another process has its pid */
	tracked->memory_path = NULL;
}
