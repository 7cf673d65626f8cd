/* SPDX-License-Identifier: Apache-2.0 */

/* One table says how each field is read and written; values are untrusted. */

#include "model/query.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "model/types.h"

#define QUERY_TIME "a time in ns since 1970"
#define QUERY_BYTES "a number of bytes, as in 512, 64K or 1.5GiB"

static const struct query_word query_orders[] = {
	{"size", SNAPSHOT_BY_SIZE},
	{"age", SNAPSHOT_BY_AGE},
	{NULL, 0},
};
static const struct query_word query_groups[] = {
	{"name", GROUP_NAME},
	{"phase", GROUP_PHASE},
	{"site", GROUP_SITE},
	{"thread", GROUP_THREAD},
	{NULL, 0},
};
static const struct query_word query_steps[] = {
	{"0.01", 10}, {"0.1", 100}, {"1", 1000}, {"10", 10000}, {"60", 60000}, {NULL, 0},
};
static const struct query_word query_past[] = {{"past", true}, {NULL, 0}};
static const struct query_word query_one[] = {{"1", true}, {NULL, 0}};

/* clang-format off */
#define QUERY_MEMBER(member) \
	.offset = offsetof(struct query, member), .width = sizeof(((struct query *)0)->member)
#define QUERY_NUMBER(member, low, high) \
	QUERY_IS_NUMBER, .least = (low), .most = (high), QUERY_MEMBER(member)
#define QUERY_WORD(member, list) QUERY_IS_WORD, .words = (list), QUERY_MEMBER(member)

const struct query_rule query_rules[] = {
	{"pid", QUERY_PID, QUERY_NUMBER(filter.pid, 1, INT32_MAX), .must = "the number of a process"},
	{"device", QUERY_DEVICE, QUERY_IS_DEVICE,
	 "a device's number, 0 to 1023, or its unique id with 0x; 64 of them at most"},
	{"type", QUERY_TYPE, QUERY_IS_TYPE, TYPES_ALL},
	{"sort", QUERY_SORT, QUERY_WORD(order, query_orders), .must = "size or age"},
	{"by", QUERY_BY, QUERY_WORD(by, query_groups), .must = "name, phase, site or thread"},
	{"limit", QUERY_LIMIT, QUERY_NUMBER(limit, 1, QUERY_LIMIT_MAX), .must = "a number from 1 to 10000"},
	{"cursor", QUERY_CURSOR, QUERY_IS_TEXT, "what \"next\" of an earlier page said", .least = 1,
	 QUERY_MEMBER(cursor)},
	{"address", QUERY_ADDRESS, QUERY_NUMBER(address, 0, UINT64_MAX), .must = "a number, decimal or with 0x"},
	{"kind", QUERY_KIND, QUERY_IS_TEXT, QUERY_KINDS, .least = 1, .most = 32,
	 .chars = "abcdefghijklmnopqrstuvwxyz_", QUERY_MEMBER(kind)},
	{"since", QUERY_SINCE, QUERY_NUMBER(since_ns, 0, UINT64_MAX), .must = QUERY_TIME},
	{"from", QUERY_FROM, QUERY_NUMBER(from_ns, 0, UINT64_MAX), .must = QUERY_TIME},
	{"to", QUERY_TO, QUERY_NUMBER(to_ns, 0, UINT64_MAX), .must = QUERY_TIME},
	{"step", QUERY_STEP, QUERY_WORD(step_ms, query_steps), .must = "0.01, 0.1, 1, 10 or 60"},
	{"token", QUERY_TOKEN, QUERY_IS_TEXT, "the token", QUERY_MEMBER(token)},
	{"size", QUERY_SIZE, QUERY_IS_SIZE, QUERY_BYTES, QUERY_MEMBER(size)},
	{"page", QUERY_PAGE, QUERY_IS_SIZE, QUERY_BYTES, QUERY_MEMBER(page_size)},
	{"only", QUERY_ONLY, QUERY_WORD(only_past, query_past), .must = "past"},
	{"buffers", QUERY_BUFFERS, QUERY_NUMBER(buffers_max, 0, QUERY_BUFFERS_MAX),
	 .must = "a number from 0 to 1000000"},
	{"browser", QUERY_BROWSER, QUERY_NUMBER(browser, 0, UINT32_MAX - 1), .must = "the number of a user"},
	/* 0 means now elsewhere, and nothing is known of 1970. */
	{"at", QUERY_AT, QUERY_NUMBER(at_ns, 1, UINT64_MAX), .must = QUERY_TIME},
	{"changes", QUERY_CHANGES, QUERY_WORD(changes, query_one), .must = "1"},
	{"cores", QUERY_CORES, QUERY_NUMBER(cores, 1, UINT32_MAX), .must = "a number of cores"},
	{"per_bank", QUERY_PER_BANK, QUERY_IS_SIZE, QUERY_BYTES, QUERY_MEMBER(per_bank)},
	{"user", QUERY_USER, QUERY_IS_TEXT, "a user", QUERY_MEMBER(filter.user)},
	{"name", QUERY_NAME, QUERY_IS_TEXT, "a name", QUERY_MEMBER(name)},
	{NULL},
};
/* clang-format on */

const struct query_rule *query_find(const char *name, uint32_t fields)
{
	for (const struct query_rule *rule = query_rules; rule->name; rule++) {
		if ((fields & rule->field) && strcmp(rule->name, name) == 0)
			return rule;
	}
	return NULL;
}

/* A number of any width: machines that run this are little-endian. */
static int query_keep(struct query *query, const struct query_rule *rule, uint64_t number)
{
	memcpy((char *)query + rule->offset, &number, rule->width);
	return 0;
}

static int query_set_number(struct query *query, const struct query_rule *rule, const char *value)
{
	uint64_t number = 0;

	if (rule->kind == QUERY_IS_SIZE)
		return text_parse_size(value, &number) < 0 || number == 0
			       ? -EINVAL
			       : query_keep(query, rule, number);
	if (text_parse_u64(value, &number) < 0 || number < rule->least || number > rule->most)
		return -EINVAL;
	return query_keep(query, rule, number);
}

static int query_set_word(struct query *query, const struct query_rule *rule, const char *value)
{
	for (const struct query_word *word = rule->words; word->text; word++) {
		if (strcmp(word->text, value) == 0)
			return query_keep(query, rule, word->value);
	}
	return -EINVAL;
}

static int query_set_text(struct query *query, const struct query_rule *rule, const char *value)
{
	size_t length = strlen(value);

	if (length < rule->least || (rule->most && length > rule->most) ||
	    (rule->chars && strspn(value, rule->chars) != length))
		return -EINVAL;
	return query_keep(query, rule, (uintptr_t)value);
}

int query_set(struct query *query, const struct query_rule *rule, const char *value)
{
	query->given |= rule->field;
	switch (rule->kind) {
	case QUERY_IS_TEXT:
		return query_set_text(query, rule, value);
	case QUERY_IS_NUMBER:
	case QUERY_IS_SIZE:
		return query_set_number(query, rule, value);
	case QUERY_IS_WORD:
		return query_set_word(query, rule, value);
	case QUERY_IS_TYPE:
		query->filter.has_type = true;
		return types_parse(value, &query->filter.type);
	case QUERY_IS_DEVICE:
		break;
	}
	return filter_add_device(&query->filter, value);
}

static void query_write_text(const char *text, FILE *out)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~";

	for (; *text; text++) {
		if (strchr(plain, *text))
			fputc(*text, out);
		else
			fprintf(out, "%%%02X", (unsigned int)(unsigned char)*text);
	}
}

/* @index: of several devices. */
static void query_write_value(const struct query *query, const struct query_rule *rule,
			      uint32_t index, FILE *out)
{
	const struct filter_device *device = &query->filter.devices[index];
	const struct query_word *word = rule->words;
	uint64_t number = 0;

	memcpy(&number, (const char *)query + rule->offset, rule->width);
	switch (rule->kind) {
	case QUERY_IS_TEXT:
		query_write_text((const char *)(uintptr_t)number, out);
		break;
	case QUERY_IS_NUMBER:
	case QUERY_IS_SIZE:
		fprintf(out, "%" PRIu64, number);
		break;
	case QUERY_IS_WORD:
		while (word[1].text && word->value != number)
			word++;
		fputs(word->text, out);
		break;
	case QUERY_IS_TYPE:
		fputs(types_name(query->filter.type), out);
		break;
	case QUERY_IS_DEVICE:
		fprintf(out, device->by_id ? "0x%" PRIx64 : "%" PRIu64, device->value);
		break;
	}
}

void query_write(const struct query *query, FILE *out)
{
	char before = '?';

	for (const struct query_rule *rule = query_rules; rule->name; rule++) {
		uint32_t count = rule->kind == QUERY_IS_DEVICE ? query->filter.device_count : 1;

		for (uint32_t i = 0; (query->given & rule->field) && i < count; i++) {
			fprintf(out, "%c%s=", before, rule->name);
			query_write_value(query, rule, i, out);
			before = '&';
		}
	}
}
