/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that have ended, as JSON; what they left is in the document of leaks. */

#include "answers/ended.h"
#include "daemon/recorder/recorder-writing.h"

static int recorder_ended(void *context, const struct store_ended *ended)
{
	struct recorder_writing *writing = context;
	struct ended_room room;
	struct ended_row row;
	int r = recorder_writing_check_room(writing);

	if (r == 0)
		r = recorder_writing_process(writing, &ended->process, ended->ending.ended_ns);
	if (r != 0)
		return r;
	row = ended_row_of(&writing->snapshot->processes[0], &ended->ending, &room);
	row.bytes = ended->bytes;
	row.buffers = ended->buffers;
	fields_put_row(writing->json, ended_fields, &row);
	return 0;
}

/* The rows of one page. */
static int recorder_ended_rows(struct store_reader *reader, const struct store_filter *filter,
			       struct recorder_writing *writing, struct store_cursor *ret_next)
{
	return store_query_endings(reader, filter, recorder_ended, writing, ret_next);
}

int recorder_documents_ended(struct store_reader *reader, const struct query *query,
			     const struct recorder_scope *scope, struct emit *json)
{
	static const struct recorder_page page = {
		.schema = "ttmem.ended/1",
		.list = "processes",
		.rows = recorder_ended_rows,
		.hidden = store_query_other_endings,
	};

	return recorder_writing_page(reader, query, scope, &page, json);
}
