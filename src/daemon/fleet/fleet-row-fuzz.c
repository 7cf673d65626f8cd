/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Feeds arbitrary bytes as the answer of another machine. What is made of them must be a document,
 * and of a size that the answer cannot change.
 */

#include <jansson.h>
#include <stdlib.h>

#include "answers/document-take.h"
#include "base/emit.h"
#include "base/testing/unit.h"
#include "daemon/fleet/fleet-row.h"

#define ROW_MAX 2048u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fleet_row row = {.host = "host"};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);
	json_t *document;

	assert(out);
	fleet_row_parse(&row, (const char *)data, size);
	assert(fleet_row_compare(&row, &row) == 0);
	fields_put_row(&json, fleet_row_fields, &row);
	assert(fclose(out) == 0 && length < ROW_MAX);
	document = document_load(text, length); /* numbers may be larger than jansson's */
	assert(json_is_object(document));
	document_unload(&document);
	free(text);
	return 0;
}
