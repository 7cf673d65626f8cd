/* SPDX-License-Identifier: Apache-2.0 */

/* The URL of a request, in one copy that is split in place. */

#include "web/server/url.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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

static int url_read_pair(struct url *url, const struct url_pair *pair, uint32_t honoured)
{
	const struct query_rule *rule = query_find(pair->key, honoured);

	if (!rule)
		return url_fail(url, "unknown parameter \"%.*s\"", URL_SHOWN, pair->key);
	if ((url->query.given & rule->field) && rule->field != QUERY_DEVICE)
		return url_fail(url, "parameter \"%s\" is there twice", rule->name);
	if (query_set(&url->query, rule, pair->value) < 0)
		return url_fail(url, "parameter \"%s\": \"%.*s\" is not %s", rule->name, URL_SHOWN,
				rule->field == QUERY_TOKEN ? "" : pair->value, rule->must);
	return 0;
}

int url_read(struct url *url, uint32_t honoured)
{
	url->query.limit = URL_LIMIT_DEFAULT;
	for (size_t i = 0; i < url->count; i++) {
		if (url_read_pair(url, &url->pairs[i], honoured) < 0)
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
