/* SPDX-License-Identifier: Apache-2.0 */

/* Lists are read row by row: another program decides how long they are. */

#include "answers/document-take.h"

#include <jansson.h>
#include <string.h>

#include "answers/fields.h"

json_t *document_load(const char *text, size_t length)
{
	json_error_t error;
	json_t *document = json_loadb(text, length, JSON_ALLOW_NUL, &error);

	if (!document && json_error_code(&error) == json_error_numeric_overflow)
		document = json_loadb(text, length, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
	return document;
}

void document_unload(json_t **document)
{
	json_decref(*document);
	*document = NULL;
}

const char *document_schema(const json_t *document)
{
	return json_string_value(json_object_get(document, "schema"));
}

bool document_next(const json_t *document, const char *list, size_t *at, const struct field *fields,
		   void *row, size_t size)
{
	const json_t *rows = json_object_get(document, list);

	if (*at >= json_array_size(rows))
		return false;
	memset(row, 0, size);
	(void)fields_take(json_array_get(rows, (*at)++), fields, row, NULL); /* needs no memory */
	return true;
}
