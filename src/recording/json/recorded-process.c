/* SPDX-License-Identifier: Apache-2.0 */

/* A row of a snapshot is found in the recording by its book. */

#include "recording/json/recorded-process.h"

#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "source/books/scan.h"

bool recorded_process_end(const struct recording *recording, const struct scan *scan,
			  const struct snapshot_process *process, struct ending *ret_ending)
{
	for (size_t i = scan->count; i > 0 && !process->alive; i--) {
		const struct scan_book *book = scan->books[i - 1];
		const struct recording_owner *owner;

		if (book->alive || !process_id_equal(book->owner.id, process->id))
			continue;
		owner = recording_owner(recording, (size_t)book->id.inode - 1);
		if (!owner)
			return false;
		*ret_ending = owner->ending;
		ret_ending->closed = book->reader.header.state == BOOK_STATE_CLOSED;
		return true;
	}
	return false;
}
