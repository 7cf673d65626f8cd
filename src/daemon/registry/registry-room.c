/* SPDX-License-Identifier: Apache-2.0 */

/* Counts the books of a process and of a user. */

#include "daemon/registry/registry-room.h"

#include <unistd.h>

#include "daemon/registry/tracked.h"
#include "source/books/scan.h"

bool registry_room(const struct book_list *book_list, size_t max, const struct scan_book *book,
		   const struct tracked *old)
{
	size_t of_process = 0, of_user = 0;

	for (size_t i = 0; i < book_list->count; i++) {
		const struct tracked *tracked = book_list->list[i];

		if (tracked == old)
			continue;
		of_process += process_id_equal(tracked->process, book->owner.id);
		of_user += tracked->maker == book->uid;
	}
	if (book_list->count >= max || of_process >= REGISTRY_PROCESS_BOOKS_MAX)
		return false;
	return book->uid == 0 || book->uid == geteuid() || of_user < max / 2;
}
