/* SPDX-License-Identifier: Apache-2.0 */

/* The URL of a request, in one copy that is split in place. */

#include "web/server/url.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "model/types.h"

#define URL_SHOWN 40 /* of a key or value in an error message */

static int url_fail(struct url *url, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int url_fail(struct url *url, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(url->problem, sizeof(url->problem), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static int url_hex(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Decodes %XX and + in place. A NUL would end the text early, so it is refused. */
static int url_decode(char *text)
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
		high = url_hex(from[1]);
		low = high < 0 ? -1 : url_hex(from[2]);
		if (low < 0 || (high == 0 && low == 0))
			return -EINVAL;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return 0;
}

int url_parse(struct url *url, const char *text)
{
	char *at, *next;

	url->text = strdup(text);
	if (!url->text)
		return -ENOMEM;
	url->path = url->text;
	at = strchr(url->text, '?');
	if (at)
		*at++ = '\0';
	for (; at && *at; at = next) {
		char *value = NULL;

		next = strchr(at, '&');
		if (next)
			*next++ = '\0';
		if (!*at)
			continue;
		if (url->count >= URL_PARAMETERS_MAX)
			return url_fail(url, "more than %u parameters", URL_PARAMETERS_MAX);
		value = strchr(at, '=');
		if (value)
			*value++ = '\0';
		else
			value = at + strlen(at);
		if (url_decode(at) < 0 || url_decode(value) < 0)
			return url_fail(url, "a %% that is not followed by two digits, or %%00");
		url->pairs[url->count++] = (struct url_pair){at, value};
	}
	return 0;
}

void url_deinit(struct url *url)
{
	free(url->text);
	url->text = NULL;
	url->count = 0;
}

static int url_read_pid(struct url *url, const char *value)
{
	uint64_t pid = 0;

	if (text_parse_u64(value, &pid) < 0 || pid == 0 || pid > INT32_MAX)
		return -EINVAL;
	url->filter.pid = (uint32_t)pid;
	return 0;
}

static int url_read_device(struct url *url, const char *value)
{
	return filter_add_device(&url->filter, value);
}

static int url_read_type(struct url *url, const char *value)
{
	url->filter.has_type = true;
	return types_parse(value, &url->filter.type);
}

static int url_read_sort(struct url *url, const char *value)
{
	if (strcmp(value, "size") == 0)
		url->order = SNAPSHOT_BY_SIZE;
	else if (strcmp(value, "age") == 0)
		url->order = SNAPSHOT_BY_AGE;
	else
		return -EINVAL;
	return 0;
}

static int url_read_by(struct url *url, const char *value)
{
	return group_parse(value, &url->by);
}

static int url_read_limit(struct url *url, const char *value)
{
	uint64_t limit = 0;

	if (text_parse_u64(value, &limit) < 0 || limit == 0 || limit > URL_LIMIT_MAX)
		return -EINVAL;
	url->limit = limit;
	return 0;
}

/* Only the provider knows what it means. */
static int url_read_cursor(struct url *url, const char *value)
{
	url->cursor = value;
	return *value ? 0 : -EINVAL;
}

static int url_read_address(struct url *url, const char *value)
{
	return text_parse_u64(value, &url->address);
}

/* Checks the spelling only; the provider knows which kinds exist. */
static int url_read_kind(struct url *url, const char *value)
{
	size_t length = strspn(value, "abcdefghijklmnopqrstuvwxyz_");

	url->kind = value;
	return length > 0 && length <= URL_KIND_MAX && !value[length] ? 0 : -EINVAL;
}

static int url_read_since(struct url *url, const char *value)
{
	return text_parse_u64(value, &url->since_ns);
}

static int url_read_from(struct url *url, const char *value)
{
	return text_parse_u64(value, &url->from_ns);
}

static int url_read_to(struct url *url, const char *value)
{
	return text_parse_u64(value, &url->to_ns);
}

/* 0 means now elsewhere, and nothing is known of 1970. */
static int url_read_at(struct url *url, const char *value)
{
	return text_parse_u64(value, &url->at_ns) < 0 || url->at_ns == 0 ? -EINVAL : 0;
}

static int url_read_step(struct url *url, const char *value)
{
	static const struct {
		const char *text;
		uint32_t ms;
	} steps[] = {{"0.01", 10}, {"0.1", 100}, {"1", 1000}, {"10", 10000}, {"60", 60000}};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (strcmp(steps[i].text, value) == 0) {
			url->step_ms = steps[i].ms;
			return 0;
		}
	}
	return -EINVAL;
}

static int url_read_token(struct url *url, const char *value)
{
	url->token = value;
	return 0;
}

static int url_read_size(struct url *url, const char *value)
{
	return text_parse_size(value, &url->size) < 0 || url->size == 0 ? -EINVAL : 0;
}

static int url_read_page(struct url *url, const char *value)
{
	return text_parse_size(value, &url->page_size) < 0 || url->page_size == 0 ? -EINVAL : 0;
}

static int url_read_per_bank(struct url *url, const char *value)
{
	return text_parse_size(value, &url->per_bank) < 0 || url->per_bank == 0 ? -EINVAL : 0;
}

static int url_read_cores(struct url *url, const char *value)
{
	uint64_t cores = 0;

	if (text_parse_u64(value, &cores) < 0 || cores == 0 || cores > UINT32_MAX)
		return -EINVAL;
	url->cores = (uint32_t)cores;
	return 0;
}

static int url_read_only(struct url *url, const char *value)
{
	url->only_past = true;
	return strcmp(value, "past") == 0 ? 0 : -EINVAL;
}

static int url_read_buffers(struct url *url, const char *value)
{
	uint64_t most = 0;

	if (text_parse_u64(value, &most) < 0 || most > URL_BUFFERS_MAX)
		return -EINVAL;
	url->buffers_max = (uint32_t)most;
	return 0;
}

static int url_read_browser(struct url *url, const char *value)
{
	uint64_t user = 0;

	if (text_parse_u64(value, &user) < 0 || user >= UINT32_MAX)
		return -EINVAL;
	url->browser = (uint32_t)user;
	return 0;
}

static int url_read_changes(struct url *url, const char *value)
{
	return strcmp(value, "1") == 0 ? 0 : -EINVAL;
}

static const struct url_rule {
	const char *name;
	uint32_t bit;
	int (*read)(struct url *url, const char *value);
	const char *must; /* what a valid value is */
} url_rules[] = {
	{"pid", URL_PID, url_read_pid, "the number of a process"},
	{"device", URL_DEVICE, url_read_device,
	 "a device's number, 0 to 1023, or its unique id with 0x; 64 of them at most"},
	{"type", URL_TYPE, url_read_type, TYPES_ALL},
	{"sort", URL_SORT, url_read_sort, "size or age"},
	{"by", URL_BY, url_read_by, "name, phase, site or thread"},
	{"limit", URL_LIMIT, url_read_limit, "a number from 1 to 10000"},
	{"cursor", URL_CURSOR, url_read_cursor, "what \"next\" of an earlier page said"},
	{"address", URL_ADDRESS, url_read_address, "a number, decimal or with 0x"},
	{"kind", URL_KIND, url_read_kind, URL_KINDS},
	{"since", URL_SINCE, url_read_since, "a time in ns since 1970"},
	{"from", URL_FROM, url_read_from, "a time in ns since 1970"},
	{"to", URL_TO, url_read_to, "a time in ns since 1970"},
	{"at", URL_AT, url_read_at, "a time in ns since 1970"},
	{"step", URL_STEP, url_read_step, "0.01, 0.1, 1, 10 or 60"},
	{"token", URL_TOKEN, url_read_token, "the token"},
	{"size", URL_SIZE, url_read_size, "a number of bytes, as in 512, 64K or 1.5GiB"},
	{"page", URL_PAGE, url_read_page, "a number of bytes, as in 512, 64K or 1.5GiB"},
	{"cores", URL_CORES, url_read_cores, "a number of cores"},
	{"per_bank", URL_PER_BANK, url_read_per_bank,
	 "a number of bytes, as in 512, 64K or 1.5GiB"},
	{"only", URL_ONLY, url_read_only, "past"},
	{"buffers", URL_BUFFERS, url_read_buffers, "a number from 0 to 1000000"},
	{"browser", URL_BROWSER, url_read_browser, "the number of a user"},
	{"changes", URL_CHANGES, url_read_changes, "1"},
};

static int url_read_pair(struct url *url, const struct url_pair *pair, uint32_t allowed)
{
	for (size_t i = 0; i < ARRAY_SIZE(url_rules); i++) {
		const struct url_rule *rule = &url_rules[i];

		if (!(allowed & rule->bit) || strcmp(rule->name, pair->key) != 0)
			continue;
		if ((url->given & rule->bit) && rule->bit != URL_DEVICE)
			return url_fail(url, "parameter \"%s\" is there twice", rule->name);
		url->given |= rule->bit;
		if (rule->read(url, pair->value) < 0)
			return url_fail(url, "parameter \"%s\": \"%.*s\" is not %s", rule->name,
					URL_SHOWN, rule->bit == URL_TOKEN ? "" : pair->value,
					rule->must);
		return 0;
	}
	return url_fail(url, "unknown parameter \"%.*s\"", URL_SHOWN, pair->key);
}

int url_read(struct url *url, uint32_t allowed)
{
	url->limit = URL_LIMIT_DEFAULT;
	for (size_t i = 0; i < url->count; i++) {
		if (url_read_pair(url, &url->pairs[i], allowed) < 0)
			return -EINVAL;
	}
	return 0;
}

int url_device_path(const char *path, uint32_t *ret_device)
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
