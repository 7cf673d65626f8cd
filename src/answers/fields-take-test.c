/* SPDX-License-Identifier: Apache-2.0 */

/* Rows from JSON that anybody may have written. */

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "answers/ended.h"
#include "answers/fields.h"
#include "answers/peak.h"
#include "base/bits.h"
#include "base/emit.h"
#include "base/pool.h"
#include "base/testing/unit.h"
#include "model/types.h"

struct inner {
	uint64_t bytes;
};

struct row {
	const struct inner *pointed;
	uint64_t number, address;
	int64_t change;
	uint32_t count, type, flags;
	const char *text;
	bool yes, no, is_known, is_unknown, has_inner;
	struct inner inner, types[BOOK_TYPES];
	struct inner list[2];
	size_t list_count;
};

#define ROW struct inner

static const struct field inner_fields[] = {
	FIELD("bytes", BYTES, bytes),
	FIELD_END,
};

#undef ROW
#define ROW struct row

static const struct field more_fields[] = {
	FIELD_STRUCT("inner", inner, inner_fields, .known = FIELD_KNOWN(has_inner)),
	FIELD_BY_TYPE("types", types, inner_fields),
	FIELD_ARRAY("list", list, list_count, inner_fields),
	FIELD_END,
};

static const struct field fields[] = {
	FIELD_IF(is_known, "number", NUMBER, number),
	FIELD_UNLESS(is_unknown, "change", SIGNED, change),
	FIELD("address", HEX, address),
	FIELD("count", SHORT, count),
	FIELD("type", NAME, type, .names = types_name),
	FIELD("flags", FLAGS, flags, .names = types_flag_name),
	FIELD("text", TEXT, text),
	FIELD("yes", BOOL, yes),
	FIELD("no", NOT, no),
	FIELD_POINTED("pointed", pointed, inner_fields),
	FIELD_MORE(more_fields),
	FIELD_END,
};

/* The row of a text, which lives as long as the document. */
static struct row taken(const char *text, json_t **ret_document)
{
	struct row row = {0};

	*ret_document = json_loads(text, 0, NULL);
	assert(*ret_document);
	assert(fields_take(*ret_document, fields, &row, NULL) == 0);
	return row;
}

UNIT(each_kind_is_read)
{
	char text[512];
	json_t *document;
	struct row row;

	(void)snprintf(text, sizeof(text),
		       "{\"number\":7,\"change\":-5,\"address\":\"0x1f\",\"count\":4294967295,"
		       "\"type\":\"L1\",\"flags\":[\"%s\",\"other\",\"%s\"],\"text\":\"a\","
		       "\"yes\":true,\"no\":false,\"pointed\":{\"bytes\":1},"
		       "\"inner\":{\"bytes\":9},\"types\":{\"KERNEL\":{\"bytes\":3}}}",
		       types_flag_name(2), types_flag_name(0));
	row = taken(text, &document);
	assert(row.number == 7 && row.is_known && row.change == -5 && !row.is_unknown);
	assert(row.address == 0x1f && row.count == UINT32_MAX && row.type == TYPES_L1);
	assert(row.flags == (1u << 2 | 1u << 0) && strcmp(row.text, "a") == 0);
	assert(row.yes && row.no && !row.pointed);
	assert(row.has_inner && row.inner.bytes == 9);
	assert(row.types[TYPES_KERNEL].bytes == 3 && row.types[TYPES_DRAM].bytes == 0);
	json_decref(document);
}

static void check_empty(const struct row *row)
{
	assert(row->number == 0 && !row->is_known && row->is_unknown && row->address == 0);
	assert(row->count == 0 && row->type == UINT32_MAX && row->flags == 0 && !row->text);
	assert(!row->yes && !row->no && !row->has_inner && row->inner.bytes == 0);
}

UNIT(what_is_missing_or_of_another_type_is_not_there)
{
	static const char *const texts[] = {
		"{}",
		"[]",
		"[{\"number\":1}]",
		"{\"number\":\"7\",\"change\":\"1\",\"address\":31,\"count\":\"1\",\"type\":1,"
		"\"flags\":1,\"text\":1,\"yes\":1,\"no\":0,\"inner\":[],\"types\":[]}",
		"{\"number\":null,\"change\":null,\"address\":null,\"count\":null,\"type\":null,"
		"\"flags\":null,\"text\":null,\"yes\":null,\"no\":null,\"inner\":null}",
		"{\"number\":1.5,\"change\":1e300,\"address\":\"x\",\"count\":{},\"type\":\"l1\","
		"\"flags\":[1,[],{}],\"text\":[],\"yes\":\"true\",\"no\":\"\",\"inner\":9}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		json_t *document;
		struct row row = taken(texts[i], &document);

		check_empty(&row);
		json_decref(document);
	}
}

UNIT(numbers_that_do_not_fit_are_zero)
{
	json_t *document;
	struct row row = taken("{\"number\":-1,\"count\":4294967296,\"types\":{\"DRAM\":"
			       "{\"bytes\":-9223372036854775808}},"
			       "\"address\":\"0x10000000000000000\"}",
			       &document);

	assert(row.number == 0 && row.count == 0 && row.address == 0);
	assert(row.types[TYPES_DRAM].bytes == 0);
	json_decref(document);
}

UNIT(a_list_has_as_many_elements_as_there_is_room_for)
{
	static const char *const texts[] = {"{\"list\":[]}", "{\"list\":[{\"bytes\":1}]}",
					    "{\"list\":[{\"bytes\":1},{\"bytes\":2}]}",
					    "{\"list\":[{\"bytes\":1},3,{\"bytes\":3}]}"};
	static const size_t counts[] = {0, 1, 2, 2};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		json_t *document;
		struct row row = taken(texts[i], &document);

		assert(row.list_count == counts[i]);
		assert(row.list[0].bytes == (i > 0));
		assert(row.list[1].bytes == (i == 2 ? 2 : 0));
		json_decref(document);
	}
}

UNIT(numbers_beyond_what_json_has_are_read_as_they_were_rounded)
{
	json_t *document =
		json_loads("{\"number\":9223372036854775808}", JSON_DECODE_INT_AS_REAL, NULL);
	struct row row = {0};

	assert(fields_take(document, fields, &row, NULL) == 0);
	assert(row.number == UINT64_C(1) << 63 && row.is_known);
	json_decref(document);
}

UNIT(nothing_at_all_is_an_empty_row)
{
	struct row row = {.number = 1, .yes = true, .text = "a"};

	assert(fields_take(NULL, fields, &row, NULL) == 0);
	check_empty(&row);
}

#define LEAK(recording)                                                                          \
	"{\"pid\":7,\"ns_pid\":7,\"comm\":\"a\",\"user\":null,\"user_id\":0,\"container\":null," \
	"\"source\":null,\"start_ns\":1,\"ended_ns\":2,\"how\":\"died\",\"exec\":false,"         \
	"\"exit\":null," recording "\"bytes\":64,\"buffer_count\":1,\"listed\":1,\"sites\":[],"  \
	"\"buffers\":[{\"pid\":7,\"comm\":\"a\",\"device\":0,\"device_uid\":null,"               \
	"\"type\":\"DRAM\",\"address\":\"0x1000\",\"size\":64,\"refs\":1,\"born_ns\":1,"         \
	"\"age_ns\":1,\"name\":null,\"phase\":null,\"thread\":7,\"flags\":[],\"stack\":[],"      \
	"\"site\":null}]}"

#define PEAK(per_bank)                                                                             \
	"{\"pid\":7,\"comm\":\"a\",\"device\":0,\"device_uid\":\"0x1f\",\"start_ns\":1,"           \
	"\"type\":\"DRAM\",\"bytes\":64,\"bound\":\"at_least\",\"time_ns\":1,\"moment_ns\":2,"     \
	"\"exact\":false,\"known_bytes\":64,\"unknown_bytes\":0,\"buffers\":2,\"per_"              \
	"bank\":" per_bank                                                                         \
	",\"groups\":[{\"key\":\"DRAM: f\",\"type\":\"DRAM\",\"calls\":\"f\",\"site\":null,"       \
	"\"name\":null,\"name_count\":null,\"names\":[],\"bytes\":32,\"buffers\":1,\"oldest_ns\":" \
	"1},"                                                                                      \
	"{\"key\":null,\"bytes\":32,\"buffers\":1,\"oldest_ns\":1}]}"

struct some {
	uint64_t numbers[3];
	size_t count;
};

#undef ROW
#define ROW struct some

static const struct field some_fields[] = {
	FIELD_FIXED("numbers", numbers, .count = offsetof(ROW, count), .has_nulls = true),
	FIELD_END,
};

UNIT(a_row_that_was_read_is_written_the_same)
{
	static const struct {
		const struct field *fields;
		const char *text;
	} rows[] = {
		{leaks_fields, LEAK("")},
		{leaks_fields, LEAK("\"recording\":null,")},
		{leaks_fields, LEAK("\"recording\":\"b\",")},
		{some_fields, "{\"numbers\":[]}"},
		{some_fields, "{\"numbers\":[7,null,0]}"},
		{peak_fields, PEAK("null")},
		{peak_fields, PEAK("{\"bytes\":8,\"bound\":\"exact\",\"banks\":null}")},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		union {
			struct leaks_row leak;
			struct peak_row peak;
			struct some some;
		} row;
		json_t *document = json_loads(rows[i].text, 0, NULL);
		struct pool pool = POOL_NULL;
		char *text = NULL;
		size_t length;
		FILE *out = open_memstream(&text, &length);
		struct emit json = EMIT_INIT(out);

		memset(&row, 0, sizeof(row));
		assert(document && fields_take(document, rows[i].fields, &row, &pool) == 0);
		fields_put_row(&json, rows[i].fields, &row);
		assert(fclose(out) == 0 && strcmp(text, rows[i].text) == 0);
		free(text);
		pool_deinit(&pool);
		json_decref(document);
	}
}

UNIT(numbers_are_as_many_as_there_is_room_for)
{
	json_t *document = json_loads("{\"numbers\":[null,2,-3,4]}", 0, NULL);
	struct some row = {{0}};

	assert(fields_take(document, some_fields, &row, NULL) == 0);
	assert(row.count == 3 && row.numbers[0] == UINT64_MAX && row.numbers[1] == 2);
	assert(row.numbers[2] == 0);
	json_decref(document);
}
