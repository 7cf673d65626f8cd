/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads arbitrary JSON as rows of answers. A row that was read can be written, and reading what was written gives
 * the same row: the second text equals the first.
 */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "answers/ended.h"
#include "answers/fields.h"
#include "answers/host.h"
#include "answers/incidents.h"
#include "answers/peak.h"
#include "answers/series.h"
#include "answers/sites.h"
#include "answers/status.h"
#include "base/bits.h"
#include "base/emit.h"
#include "base/pool.h"
#include "base/testing/unit.h"

#define ROW_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The row of a document as JSON; NULL if the text is no JSON. */
static char *rewritten(const struct field *fields, const char *text, size_t size, size_t flags)
{
	static _Alignas(max_align_t) char row[ROW_MAX];
	struct pool pool = POOL_NULL;
	char *written = NULL;
	size_t length;
	json_t *document = json_loadb(text, size, JSON_ALLOW_NUL | flags, NULL);
	FILE *out;
	struct emit json;

	if (!document)
		return NULL;
	memset(row, 0, sizeof(row));
	assert(fields_take(document, fields, row, &pool) == 0);
	out = open_memstream(&written, &length);
	assert(out);
	json = (struct emit)EMIT_INIT(out);
	fields_put_row(&json, fields, row);
	assert(fclose(out) == 0);
	json_decref(document);
	pool_deinit(&pool);
	return written;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct field *const tables[] = {
		incident_fields, site_leak_fields, leaks_fields,   ended_fields, series_fields,
		host_fields,     status_fields,    buffers_fields, peak_fields,
	};

	static_assert(
		sizeof(struct incident_row) <= ROW_MAX && sizeof(struct site_row) <= ROW_MAX &&
			sizeof(struct leaks_row) <= ROW_MAX &&
			sizeof(struct series_row) <= ROW_MAX &&
			sizeof(struct host_row) <= ROW_MAX &&
			sizeof(struct status_row) <= ROW_MAX &&
			sizeof(struct buffers_row) <= ROW_MAX && sizeof(struct peak_row) <= ROW_MAX,
		"room for each row");
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		char *once = rewritten(tables[i], (const char *)data, size, 0);
		char *twice = once ? rewritten(tables[i], once, strlen(once), 0) : NULL;

		if (once && twice)
			assert(strcmp(once, twice) == 0);
		/* A number beyond 2^63, which was a real number; with it all are rounded. */
		if (once && !twice) {
			twice = rewritten(tables[i], once, strlen(once), JSON_DECODE_INT_AS_REAL);
			assert(twice);
		}
		free(once);
		free(twice);
	}
	return 0;
}
