/* SPDX-License-Identifier: Apache-2.0 */

/* Rows of lists of any document. */

#include "answers/document-take.h"

#include <stdint.h>
#include <string.h>

#include "answers/fields.h"
#include "base/testing/unit.h"

struct row {
	uint32_t pid;
	const char *comm;
};

#define ROW struct row

static const struct field fields[] = {
	FIELD("pid", SHORT, pid),
	FIELD("comm", TEXT, comm),
	FIELD_END,
};

static struct json_t *loaded(const char *text)
{
	return document_load(text, strlen(text));
}

UNIT(each_element_of_a_list_is_a_row)
{
	struct json_t *document =
		loaded("{\"schema\":\"a/1\",\"list\":[{\"pid\":7,\"comm\":\"x\"},3,{\"pid\":-1}]}");
	struct row row;
	size_t at = 0;

	assert(strcmp(document_schema(document), "a/1") == 0);
	assert(document_next(document, "list", &at, fields, &row, sizeof(row)));
	assert(row.pid == 7 && strcmp(row.comm, "x") == 0);
	for (int i = 0; i < 2; i++) {
		assert(document_next(document, "list", &at, fields, &row, sizeof(row)));
		assert(row.pid == 0 && !row.comm);
	}
	assert(!document_next(document, "list", &at, fields, &row, sizeof(row)) && at == 3);
	document_unload(&document);
	assert(!document);
}

UNIT(what_is_no_list_has_no_rows)
{
	static const char *const texts[] = {"", "[]", "{}", "{\"list\":{\"a\":1}}",
					    "{\"schema\":1}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct json_t *document = loaded(texts[i]);
		struct row row;
		size_t at = 0;

		assert(!document_schema(document));
		assert(!document_next(document, "list", &at, fields, &row, sizeof(row)) && at == 0);
		document_unload(&document);
	}
}

UNIT(numbers_are_exact_and_a_lie_rounds_them)
{
	static const struct field numbers[] = {
		{.key = "a", .kind = FIELD_NUMBER},
		{.key = "b", .kind = FIELD_NUMBER, .offset = sizeof(uint64_t)},
		FIELD_END,
	};
	struct json_t *document = loaded("{\"a\":9223372036854775807,\"b\":-1}");
	uint64_t row[2];

	assert(fields_take(document, numbers, row, NULL) == 0);
	assert(row[0] == INT64_MAX && row[1] == 0);
	document_unload(&document);
	document = loaded("{\"a\":18446744073709551615,\"b\":1794787931175428897}");
	assert(fields_take(document, numbers, row, NULL) == 0);
	assert(row[0] == UINT64_MAX && row[1] / 1000 == 1794787931175428); /* rounded to 256 ns */
	document_unload(&document);
	document = loaded("{\"a\":1e20,\"b\":0.5}");
	assert(fields_take(document, numbers, row, NULL) == 0 && row[0] == 0 && row[1] == 0);
	document_unload(&document);
	assert(!loaded("{"));
}
