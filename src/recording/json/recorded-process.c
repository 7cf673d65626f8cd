/* SPDX-License-Identifier: Apache-2.0 */

/* A row of a snapshot is found in the recording by its book. */

#include "recording/json/recorded-process.h"

#include "base/emit.h"
#include "model/json/document.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"
#include "source/books/scan.h"

bool recorded_process_end(const struct recording *recording, const struct scan *scan,
			  const struct snapshot_process *process, struct recorded_end *ret_end)
{
	for (size_t i = scan->count; i > 0 && !process->alive; i--) {
		const struct scan_book *book = scan->books[i - 1];

		if (book->alive || book->owner.pid != process->pid ||
		    book->owner.start_ticks != process->start_ticks)
			continue;
		*ret_end = (struct recorded_end){
			.owner = recording_owner(recording, (size_t)book->inode - 1),
			.is_closed = book->reader.header.state == BOOK_STATE_CLOSED,
		};
		return ret_end->owner;
	}
	return false;
}

void recorded_process_put(struct emit *json, const struct snapshot_process *process,
			  const struct recorded_end *end)
{
	const struct recording_ended *ended = &end->owner->ended;
	const int status = ended->status;

	document_ended(json, process,
		       &(struct document_ending){
			       .ended_ns = ended->realtime,
			       .is_closed = end->is_closed,
			       .status = ended->is_status_known ? &status : NULL,
		       });
}
