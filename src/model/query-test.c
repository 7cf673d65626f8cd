/* SPDX-License-Identifier: Apache-2.0 */

/* The table of fields: what is written is read again; web/server/url-test.c has the wrong values. */

#include "model/query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

/* A value of each field, as it is written. */
static const char *const values[][2] = {
	{"pid", "7"},
	{"device", "3"},
	{"type", "L1"},
	{"sort", "age"},
	{"by", "thread"},
	{"limit", "10"},
	{"cursor", "a-1"},
	{"address", "18446744073709551615"},
	{"kind", "double_free"},
	{"since", "1"},
	{"from", "2"},
	{"to", "3"},
	{"step", "0.1"},
	{"token", "t"},
	{"size", "1536"},
	{"page", "32"},
	{"only", "past"},
	{"buffers", "0"},
	{"browser", "1000"},
	{"at", "4"},
	{"changes", "1"},
	{"cores", "64"},
	{"per_bank", "4096"},
	{"user", "me"},
	{"name", "weights.1"},
};

static void written(const struct query *query, const char *expected)
{
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	assert(out);
	query_write(query, out);
	assert(fclose(out) == 0);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%s instead of %s\n", text, expected);
	assert(strcmp(text, expected) == 0);
	free(text);
}

UNIT(each_field_is_written_as_it_is_read)
{
	size_t i = 0;

	for (; query_rules[i].name; i++) {
		const struct query_rule *rule = &query_rules[i];
		struct query query = {0};
		char expected[64];

		assert(i < sizeof(values) / sizeof(*values));
		assert(strcmp(rule->name, values[i][0]) == 0 && rule->field == 1u << i);
		assert(query_find(rule->name, UINT32_MAX) == rule);
		assert(!query_find(rule->name, ~(uint32_t)rule->field));
		assert(query_set(&query, rule, values[i][1]) == 0 && query.given == rule->field);
		snprintf(expected, sizeof(expected), "?%s=%s", values[i][0], values[i][1]);
		written(&query, expected);
	}
	assert(i == sizeof(values) / sizeof(*values));
	assert(!query_find("colour", UINT32_MAX));
}

UNIT(only_what_is_given_is_written)
{
	struct query query = {.given = QUERY_PID | QUERY_BUFFERS, .filter.pid = 7, .limit = 9};

	written(&query, "?pid=7&buffers=0");
	written(&(struct query){.limit = 9}, "");
}

UNIT(each_device_is_written)
{
	const struct query_rule *rule = query_find("device", QUERY_DEVICE);
	struct query query = {0};

	assert(query_set(&query, rule, "1023") == 0 && query_set(&query, rule, "0xAB") == 0);
	written(&query, "?device=1023&device=0xab");
}

UNIT(text_cannot_become_another_parameter)
{
	struct query query = {
		.given = QUERY_CURSOR | QUERY_TOKEN, .cursor = "a&pid=7 %+#", .token = "\xc3\xa4"};

	written(&query, "?cursor=a%26pid%3D7%20%25%2B%23&token=%C3%A4");
}
