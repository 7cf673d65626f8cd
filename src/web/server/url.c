/* SPDX-License-Identifier: Apache-2.0 */

/* The first line of a request, in one copy that is taken apart in place. */

#include "web/server/url.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "model/types.h"

#define TARGET_SHOWN 40 /* of a key or value in a problem */

static int target_fail(struct target *target, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static int target_fail(struct target *target, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(target->problem, sizeof(target->problem), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int target_hex(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* %XX and + in place. A NUL would end the text early: nobody means that. */
static int target_decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high, low;

		if (*from == '+') {
			*to++ = ' ';
			continue;
		}
		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = target_hex(from[1]);
		low = high < 0 ? -1 : target_hex(from[2]);
		if (low < 0 || (high == 0 && low == 0))
			return -EINVAL;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return 0;
}

int target_parse(struct target *target, const char *text)
{
	char *at, *next;

	target->text = strdup(text);
	if (!target->text)
		return -ENOMEM;
	target->path = target->text;
	at = strchr(target->text, '?');
	if (at)
		*at++ = '\0';
	for (; at && *at; at = next) {
		char *value = NULL;

		next = strchr(at, '&');
		if (next)
			*next++ = '\0';
		if (!*at)
			continue;
		if (target->count >= TARGET_PARAMETERS_MAX)
			return target_fail(target, "more than %u parameters",
					   TARGET_PARAMETERS_MAX);
		value = strchr(at, '=');
		if (value)
			*value++ = '\0';
		else
			value = at + strlen(at);
		if (target_decode(at) < 0 || target_decode(value) < 0)
			return target_fail(target,
					   "a %% that is not followed by two digits, or %%00");
		target->pairs[target->count++] = (struct target_pair){at, value};
	}
	return 0;
}

void target_deinit(struct target *target)
{
	free(target->text);
	target->text = NULL;
	target->count = 0;
}

static int target_read_pid(struct target *target, const char *value)
{
	uint64_t pid = 0;

	if (text_parse_u64(value, &pid) < 0 || pid == 0 || pid > INT32_MAX)
		return -EINVAL;
	target->filter.has_pid = true;
	target->filter.pid = (uint32_t)pid;
	return 0;
}

static int target_read_device(struct target *target, const char *value)
{
	return filter_add_device(&target->filter, value);
}

static int target_read_type(struct target *target, const char *value)
{
	target->filter.has_type = true;
	return types_parse(value, &target->filter.type);
}

static int target_read_sort(struct target *target, const char *value)
{
	if (strcmp(value, "size") == 0)
		target->order = SNAPSHOT_BY_SIZE;
	else if (strcmp(value, "age") == 0)
		target->order = SNAPSHOT_BY_AGE;
	else
		return -EINVAL;
	return 0;
}

static int target_read_by(struct target *target, const char *value)
{
	return group_parse(value, &target->by);
}

static int target_read_limit(struct target *target, const char *value)
{
	uint64_t limit = 0;

	if (text_parse_u64(value, &limit) < 0 || limit == 0 || limit > TARGET_LIMIT_MAX)
		return -EINVAL;
	target->limit = limit;
	return 0;
}

/* What it means is known to whoever wrote it. */
static int target_read_cursor(struct target *target, const char *value)
{
	target->cursor = value;
	return *value ? 0 : -EINVAL;
}

static int target_read_address(struct target *target, const char *value)
{
	return text_parse_u64(value, &target->address);
}

/* How it is spelled. Whether there is such a kind is known to whoever keeps the past. */
static int target_read_kind(struct target *target, const char *value)
{
	size_t length = strspn(value, "abcdefghijklmnopqrstuvwxyz_");

	target->kind = value;
	return length > 0 && length <= TARGET_KIND_MAX && !value[length] ? 0 : -EINVAL;
}

static int target_read_since(struct target *target, const char *value)
{
	return text_parse_u64(value, &target->since_ns);
}

static int target_read_from(struct target *target, const char *value)
{
	return text_parse_u64(value, &target->from_ns);
}

static int target_read_to(struct target *target, const char *value)
{
	return text_parse_u64(value, &target->to_ns);
}

static int target_read_step(struct target *target, const char *value)
{
	uint64_t step = 0;

	if (text_parse_u64(value, &step) < 0 || (step != 1 && step != 10 && step != 60))
		return -EINVAL;
	target->step_s = (uint32_t)step;
	return 0;
}

static int target_read_token(struct target *target, const char *value)
{
	target->token = value;
	return 0;
}

static int target_read_size(struct target *target, const char *value)
{
	return text_parse_size(value, &target->size) < 0 || target->size == 0 ? -EINVAL : 0;
}

static int target_read_page(struct target *target, const char *value)
{
	return text_parse_size(value, &target->page_size) < 0 || target->page_size == 0 ? -EINVAL
											: 0;
}

static int target_read_only(struct target *target, const char *value)
{
	target->only_past = true;
	return strcmp(value, "past") == 0 ? 0 : -EINVAL;
}

static const struct target_rule {
	const char *name;
	uint32_t bit;
	int (*read)(struct target *target, const char *value);
	const char *must; /* what the value must be */
} target_rules[] = {
	{"pid", TARGET_PID, target_read_pid, "the number of a process"},
	{"device", TARGET_DEVICE, target_read_device,
	 "a device's number, 0 to 1023, or its unique id with 0x; 64 of them at most"},
	{"type", TARGET_TYPE, target_read_type,
	 "DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE, CB or KERNEL"},
	{"sort", TARGET_SORT, target_read_sort, "size or age"},
	{"by", TARGET_BY, target_read_by, "name, phase, site or thread"},
	{"limit", TARGET_LIMIT, target_read_limit, "a number from 1 to 10000"},
	{"cursor", TARGET_CURSOR, target_read_cursor, "what \"next\" of an earlier page said"},
	{"address", TARGET_ADDRESS, target_read_address, "a number, decimal or with 0x"},
	{"kind", TARGET_KIND, target_read_kind, TARGET_KINDS},
	{"since", TARGET_SINCE, target_read_since, "a time in ns since 1970"},
	{"from", TARGET_FROM, target_read_from, "a time in ns since 1970"},
	{"to", TARGET_TO, target_read_to, "a time in ns since 1970"},
	{"step", TARGET_STEP, target_read_step, "1, 10 or 60"},
	{"token", TARGET_TOKEN, target_read_token, "the token"},
	{"size", TARGET_SIZE, target_read_size, "a number of bytes, as in 512, 64K or 1.5GiB"},
	{"page", TARGET_PAGE, target_read_page, "a number of bytes, as in 512, 64K or 1.5GiB"},
	{"only", TARGET_ONLY, target_read_only, "past"},
};

static int target_read_pair(struct target *target, const struct target_pair *pair, uint32_t allowed)
{
	for (size_t i = 0; i < ARRAY_SIZE(target_rules); i++) {
		const struct target_rule *rule = &target_rules[i];

		if (!(allowed & rule->bit) || strcmp(rule->name, pair->key) != 0)
			continue;
		if ((target->given & rule->bit) && rule->bit != TARGET_DEVICE)
			return target_fail(target, "parameter \"%s\" is there twice", rule->name);
		target->given |= rule->bit;
		if (rule->read(target, pair->value) < 0)
			return target_fail(target, "parameter \"%s\": \"%.*s\" is not %s",
					   rule->name, TARGET_SHOWN,
					   rule->bit == TARGET_TOKEN ? "" : pair->value,
					   rule->must);
		return 0;
	}
	return target_fail(target, "unknown parameter \"%.*s\"", TARGET_SHOWN, pair->key);
}

int target_read(struct target *target, uint32_t allowed)
{
	target->limit = TARGET_LIMIT_DEFAULT;
	for (size_t i = 0; i < target->count; i++) {
		if (target_read_pair(target, &target->pairs[i], allowed) < 0)
			return -EINVAL;
	}
	return 0;
}

int target_device_path(const char *path, uint32_t *ret_device)
{
	static const char before[] = "/api/devices/", after[] = "/stats";
	uint64_t device = 0;
	char digits[8] = {0};
	size_t length;

	if (strncmp(path, before, strlen(before)) != 0)
		return -EINVAL;
	path += strlen(before);
	length = strspn(path, "0123456789");
	if (length == 0 || length >= sizeof(digits) || strcmp(path + length, after) != 0)
		return -EINVAL;
	memcpy(digits, path, length);
	if (text_parse_u64(digits, &device) < 0)
		return -EINVAL;
	*ret_device = (uint32_t)device;
	return 0;
}
