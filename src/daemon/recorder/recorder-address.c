/* SPDX-License-Identifier: Apache-2.0 */

/*
 * All rows about one address. Nothing in the database is sorted by address, so all leaks are read:
 * anybody may ask for that, hence the limits of time and memory.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "daemon/recorder/recorder-documents.h"
#include "store/store.h"

/* Reads page after page. 0, 1: cut, or a negative errno. */
static int recorder_address_pages(struct store_reader *reader, const struct recorder_scope *scope,
				  struct store_filter *filter, recorder_documents_rows_fn *rows,
				  struct emit *json)
{
	for (uint32_t i = 0; i < RECORDER_ADDRESS_PAGES_MAX; i++) {
		struct store_cursor next;
		int r = rows(reader, filter, scope, json, &next);

		if (r == -EFBIG || r == -ETIME)
			return 1;
		if (r < 0 || !next.more)
			return r;
		filter->after = next;
	}
	return 1;
}

/* One list as a JSON array. Return: as above. */
static int recorder_address_list(struct store_reader *reader, const struct recorder_scope *scope,
				 const struct store_filter *first, recorder_documents_rows_fn *rows,
				 char **ret_text)
{
	struct store_filter filter = *first;
	CLEANUP_FREE char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);
	int r;

	if (!out)
		return -ENOMEM;
	emit_open_array(&json, NULL);
	r = recorder_address_pages(reader, scope, &filter, rows, &json);
	emit_close_array(&json);
	if (fclose(out) != 0 && r >= 0)
		r = -ENOMEM;
	if (r >= 0)
		*ret_text = cleanup_steal(text);
	return r;
}

void recorder_documents_rows_deinit(struct recorder_rows *rows)
{
	free(rows->leaks);
	free(rows->incidents);
}

int recorder_documents_address(struct store_reader *reader, const struct recorder_scope *scope,
			       uint32_t pid, uint64_t until_ms, struct recorder_rows *ret_rows)
{
	CLEANUP(recorder_documents_rows_deinit) struct recorder_rows rows = {.leaks = NULL};
	const struct store_filter filter = {
		.sees = scope->sees,
		.pid = pid,
		.limit = RECORDER_ADDRESS_PAGE,
		.until_ms = until_ms,
	};
	struct recorder_scope limited = *scope;
	int r, s;

	limited.bytes_max = RECORDER_ADDRESS_BYTES_MAX;
	/* Incidents first: they are few, and would get no time after the leaks. */
	r = recorder_address_list(reader, &limited, &filter, recorder_documents_incident_rows,
				  &rows.incidents);
	if (r < 0)
		return r;
	s = recorder_address_list(reader, &limited, &filter, recorder_documents_leak_rows,
				  &rows.leaks);
	if (s < 0)
		return s;
	ret_rows->leaks = cleanup_steal(rows.leaks);
	ret_rows->incidents = cleanup_steal(rows.incidents);
	ret_rows->is_cut = r > 0 || s > 0;
	return 0;
}
