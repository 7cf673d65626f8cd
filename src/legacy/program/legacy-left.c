/* SPDX-License-Identifier: Apache-2.0 */

/* A list; a book whose keeper lives is not taken, because that has only lost its link for a moment. */

#include "legacy/program/legacy-left.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "legacy/server/legacy-server.h"
#include "source/books/scan.h"

struct legacy_left_book {
	struct scan_book *book;
	int pid_fd;
};

bool legacy_left_is_another(uint32_t pid)
{
	char path[48], comm[32];

	(void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	/* Or by an old server's name, of which the kernel keeps 15 letters. */
	return pid != 0 && pid != (uint32_t)getpid() &&
	       small_file_read_line(AT_FDCWD, path, comm, sizeof(comm)) > 0 &&
	       (strcmp(comm, "ttmem-legacy") == 0 || strncmp(comm, "allocation_serv", 15) == 0);
}

void legacy_left_add_consume(struct legacy_left *left, struct scan_book *book, int pid_fd)
{
	CLEANUP_CLOSE int owned = pid_fd;
	struct legacy_left_book *list =
		array_grow(left->list, &left->capacity, left->count + 1, sizeof(*list));

	if (list)
		left->list = list;
	if (!list || legacy_left_is_another(book->reader.header.keeper)) {
		scan_book_free(book); /* ttmemd has it, and reports it when the process ends */
		return;
	}
	list[left->count++] =
		(struct legacy_left_book){.book = book, .pid_fd = cleanup_steal_fd(&owned)};
}

void legacy_left_continue(struct legacy_left *left, struct legacy_server *server)
{
	for (size_t i = 0; i < left->count; i++) {
		struct legacy_left_book *one = &left->list[i];

		if (one->pid_fd < 0 && !legacy_server_hears(server, one->book->owner.id)) {
			scan_book_free(one->book);
			continue;
		}
		/* Without room ttmemd keeps the old one, as it is. */
		(void)legacy_server_adopt_consume(server, one->book, one->pid_fd);
	}
	left->count = 0;
	legacy_left_deinit(left);
}

void legacy_left_deinit(struct legacy_left *left)
{
	for (size_t i = 0; i < left->count; i++) {
		scan_book_free(left->list[i].book);
		if (left->list[i].pid_fd >= 0)
			(void)close(left->list[i].pid_fd); /* nothing was written to it */
	}
	free(left->list);
	*left = (struct legacy_left){0};
}
