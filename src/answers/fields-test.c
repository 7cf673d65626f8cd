/* SPDX-License-Identifier: Apache-2.0 */

/* Rows as tables describe them. */

#include "answers/fields.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/emit.h"
#include "base/testing/unit.h"
#include "model/types.h"

struct inner {
	uint64_t bytes;
	bool is_known;
};

struct place {
	uint32_t device;
	bool is_open;
};

struct row {
	const struct place *place;
	const struct inner *pointed;
	uint64_t number, address, bytes, span;
	uint32_t count, type, flags;
	const char *text;
	bool yes, no, is_known, is_unknown;
	struct inner types[BOOK_TYPES];
	struct inner list[2];
	size_t list_count;
	int64_t change;
};

static void put_code(struct emit *json, const char *key, const void *context)
{
	const struct row *row = context;

	emit_u64(json, key, row->number * 2);
}

static const char *shout(const void *context, char *text)
{
	const struct row *row = context;

	(void)snprintf(text, FIELDS_TEXT, "%s!", row->text ? row->text : "nothing");
	return text;
}

#define ROW struct inner

static const struct field inner_fields[] = {
	FIELD_IF(is_known, "bytes", BYTES, bytes),
	FIELD_END,
};

#undef ROW
#define ROW struct row

static const struct field more_fields[] = {
	FIELD_POINTED("pointed", pointed, inner_fields),
	FIELD_END,
};

static const struct field fields[] = {
	FIELD("number", NUMBER, number, .column = {"NUMBER", true}),
	FIELD_OR_NULL("or_null", NUMBER, number),
	FIELD_OR_NOTHING("or_nothing", NUMBER, number),
	FIELD_IF(is_known, "if", NUMBER, number),
	FIELD_UNLESS(is_unknown, "unless", NUMBER, number),
	FIELD("address", HEX, address, .column = {"ADDRESS"}),
	FIELD("size", BYTES, bytes, .column = {"SIZE", true}),
	FIELD("span", SPAN, span, .column = {"AGE", true}),
	FIELD("count", SHORT, count),
	FIELD("type", NAME, type, .names = types_name, .column = {"TYPE"}),
	FIELD("flags", FLAGS, flags, .names = types_flag_name),
	FIELD("text", TEXT, text, .column = {"TEXT"}),
	FIELD_OR_NOTHING("maybe", TEXT, text),
	FIELD("yes", BOOL, yes),
	FIELD("not_no", NOT, no),
	FIELD_OR_NOTHING("no", BOOL, no),
	FIELD("shown", TEXT, text, .absent = FIELD_COLUMN, .people = shout, .column = {"SHOWN"}),
	FIELD_VIA(place, struct place, "device", SHORT, device),
	FIELD_VIA(place, struct place, "open", BOOL, is_open),
	FIELD_BY_TYPE("types", types, inner_fields),
	FIELD_CODED("twice", put_code),
	FIELD_MORE(more_fields),
	FIELD_ARRAY("list", list, list_count, inner_fields),
	FIELD("change", SIGNED, change),
	FIELD_END,
};

static char *put(const struct field *table, const struct row *row)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	fields_put_row(&json, table, row);
	assert(fclose(out) == 0);
	return text;
}

static void check(const struct row *row, const char *expected)
{
	char *text = put(fields, row);

	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%s\nis not\n%s\n", text, expected);
	assert(strcmp(text, expected) == 0);
	free(text);
}

static const struct place somewhere = {.device = 3, .is_open = true};

UNIT(json_has_each_kind)
{
	const struct inner pointed = {.bytes = 9, .is_known = true};
	struct row row = {
		.place = &somewhere,
		.pointed = &pointed,
		.number = UINT64_MAX,
		.address = 0x1f,
		.bytes = 2048,
		.span = 5,
		.count = UINT32_MAX,
		.type = TYPES_L1,
		.flags = 1u << 2 | 1u << 0,
		.text = "\"a\"",
		.yes = true,
		.is_known = true,
		.list = {pointed},
		.list_count = 1,
		.change = -3,
	};
	char expected[2048];

	row.types[TYPES_L1] = pointed;
	row.number = 21;
	(void)snprintf(expected, sizeof(expected),
		       "{\"number\":21,\"or_null\":21,\"or_nothing\":21,\"if\":21,\"unless\":21,"
		       "\"address\":\"0x1f\",\"size\":2048,\"span\":5,\"count\":4294967295,"
		       "\"type\":\"L1\",\"flags\":[\"%s\",\"%s\"],\"text\":\"\\\"a\\\"\","
		       "\"maybe\":\"\\\"a\\\"\",\"yes\":true,\"not_no\":true,\"device\":3,"
		       "\"open\":true,\"types\":{\"DRAM\":{\"bytes\":null},\"L1\":{\"bytes\":9},"
		       "\"SYSTEM_MEMORY\":{\"bytes\":null},\"L1_SMALL\":{\"bytes\":null},"
		       "\"TRACE\":{\"bytes\":null},\"CB\":{\"bytes\":null},"
		       "\"KERNEL\":{\"bytes\":null}},\"twice\":42,\"pointed\":{\"bytes\":9},"
		       "\"list\":[{\"bytes\":9}],\"change\":-3}",
		       types_flag_name(0), types_flag_name(2));
	check(&row, expected);
}

UNIT(json_shows_what_is_not_there)
{
	const struct row row = {.place = &somewhere, .is_unknown = true, .no = true};

	check(&row,
	      "{\"number\":0,\"or_null\":null,\"if\":null,\"unless\":null,\"address\":\"0x0\","
	      "\"size\":0,\"span\":0,\"count\":0,\"type\":\"DRAM\",\"flags\":[],\"text\":null,"
	      "\"yes\":false,\"not_no\":false,\"no\":true,\"device\":3,\"open\":true,"
	      "\"types\":{\"DRAM\":{\"bytes\":null},\"L1\":{\"bytes\":null},"
	      "\"SYSTEM_MEMORY\":{\"bytes\":null},\"L1_SMALL\":{\"bytes\":null},"
	      "\"TRACE\":{\"bytes\":null},\"CB\":{\"bytes\":null},"
	      "\"KERNEL\":{\"bytes\":null}},\"twice\":0,\"pointed\":null,\"list\":[],\"change\":"
	      "0}");
}

static char *csv(const char *keys, const struct row *row)
{
	struct fields_view view;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	fields_choose(&view, fields, keys);
	fields_csv_row(out, &view, row);
	assert(fclose(out) == 0);
	return text;
}

/* What is passed on the way is written as the row has it. */
UNIT(json_of_a_row_may_stop_at_its_lists)
{
	static const struct field parts[] = {
		FIELD("number", NUMBER, number),
		FIELD_ARRAY("first", list, list_count, inner_fields),
		FIELD("text", TEXT, text),
		FIELD_ARRAY("second", list, list_count, inner_fields),
		FIELD("yes", BOOL, yes),
		FIELD_END,
	};
	const struct row row = {.number = 1, .text = "a", .list_count = 1}, rest = {.text = "b"};
	const struct inner element = {.bytes = 2, .is_known = true};
	struct fields_part part = {.next = parts}, other = {.next = parts};
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	emit_open_array(&json, NULL);
	fields_put_part(&json, &part, &row, "first");
	for (int i = 0; i < 2; i++) {
		fields_put_part(&json, &part, &rest, "first");
		fields_put_row(&json, inner_fields, &element);
	}
	fields_put_part(&json, &part, &rest, NULL);
	assert(!part.list);
	fields_put_part(&json, &other, &rest, "second");
	fields_put_row(&json, inner_fields, &element);
	fields_put_part(&json, &other, &rest, NULL);
	emit_close_array(&json);
	assert(fclose(out) == 0);
	assert(strcmp(text, "[{\"number\":1,\"first\":[{\"bytes\":2},{\"bytes\":2}],"
			    "\"text\":\"b\",\"second\":[],\"yes\":false},"
			    "{\"number\":0,\"first\":[],\"text\":\"b\","
			    "\"second\":[{\"bytes\":2}],\"yes\":false}]") == 0);
	free(text);
}

UNIT(csv_has_the_chosen_fields_in_their_order)
{
	const struct row full = {.place = &somewhere,
				 .number = 7,
				 .address = 0xab,
				 .type = TYPES_CB,
				 .flags = 3,
				 .text = "a,b",
				 .yes = true,
				 .is_known = true};
	const struct row empty = {.place = &somewhere, .is_unknown = true};
	const char *const keys = "text,number,if,unless,or_null,or_nothing,address,type,yes,device";
	char *text = csv(keys, &full);

	assert(strcmp(text, "\"a,b\",7,7,7,7,7,0xab,CB,1,3\n") == 0);
	free(text);
	/* A 0 that JSON leaves out is a 0, what is not known is nothing. */
	text = csv(keys, &empty);
	assert(strcmp(text, ",0,,,,0,0x0,DRAM,0,3\n") == 0);
	free(text);
	text = csv("flags", &full);
	assert(strchr(text, ' ') && strncmp(text, types_flag_name(0), 5) == 0);
	free(text);
}

UNIT(a_table_shows_them_as_people_read_them)
{
	const struct row row = {.number = 7,
				.address = 0xab,
				.bytes = 2048,
				.span = UINT64_C(3000000000),
				.type = TYPES_L1_SMALL};
	struct fields_view view;
	struct table table;
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	fields_choose(&view, fields, "size,number,span,address,text,type,shown");
	table_begin(&table, out, view.columns, view.count, 0);
	fields_table_row(&table, &view, &row);
	table_end(&table);
	assert(fclose(out) == 0);
	assert(strcmp(text, "   SIZE  NUMBER  AGE  ADDRESS  TEXT  TYPE      SHOWN\n"
			    "2.0 KiB       7  3 s  0xab     -     L1_SMALL  nothing!\n") == 0);
	free(text);
}
