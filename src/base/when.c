/* SPDX-License-Identifier: Apache-2.0 */

/* Times as people write them. */

#include "base/when.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"

#define WHEN_DAY (24 * 3600 * NS_PER_S)

/* A number with a fraction; false if there is none. */
static bool when_number(const char **text, double *ret_number)
{
	const char *from = *text;
	char *end;

	if (*from < '0' || *from > '9')
		return false;
	*ret_number = strtod(from, &end);
	*text = end;
	/* strtod() knows forms that nobody means. */
	return strspn(from, "0123456789.") == (size_t)(end - from);
}

static uint64_t when_unit(const char **text)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"ms", NS_PER_MS},    {"s", NS_PER_S},        {"min", 60 * NS_PER_S},
		{"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}, {"d", WHEN_DAY},
	};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t length = strlen(units[i].name);

		if (strncmp(*text, units[i].name, length) == 0) {
			*text += length;
			return units[i].ns;
		}
	}
	return 0;
}

bool when_duration(const char *text, uint64_t *ret_ns)
{
	double ns = 0, number;
	const char *at = text;

	while (*at) {
		uint64_t unit;

		if (!when_number(&at, &number))
			return false;
		unit = when_unit(&at);
		if (unit == 0 && (*at || ns > 0))
			return false;
		ns += number * (double)(unit ? unit : NS_PER_S);
	}
	if (at == text || ns > 1e18)
		return false;
	*ret_ns = (uint64_t)ns;
	return true;
}

/* @local: a day, whose time is set. */
static bool when_on_day(const char *text, struct tm *local, uint64_t *ret_ns)
{
	int hour, minute, used = 0;
	double seconds = 0;
	time_t time;

	if (sscanf(text, "%2d:%2d%n", &hour, &minute, &used) != 2 || hour < 0 || hour > 23 ||
	    minute < 0 || minute > 59)
		return false;
	if (text[used] == ':') {
		const char *at = text + used + 1;

		if (!when_number(&at, &seconds) || *at || seconds >= 61)
			return false;
	} else if (text[used]) {
		return false;
	}
	local->tm_hour = hour;
	local->tm_min = minute;
	local->tm_sec = 0;
	local->tm_isdst = -1;
	time = mktime(local);
	if (time < 0)
		return false;
	*ret_ns = (uint64_t)time * NS_PER_S + (uint64_t)(seconds * (double)NS_PER_S);
	return true;
}

bool when_time_of_day(const char *text, uint64_t day_ns, uint64_t *ret_ns)
{
	time_t day = (time_t)(day_ns / NS_PER_S);
	struct tm local;

	return localtime_r(&day, &local) && when_on_day(text, &local, ret_ns);
}

static bool when_date(const char *text, uint64_t *ret_ns)
{
	struct tm local = {0};
	const char *rest;

	/* strptime() takes fewer digits, and blanks. */
	if (strspn(text, "0123456789") != 4)
		return false;
	rest = strptime(text, "%Y-%m-%d", &local);
	if (!rest)
		return false;
	if (!*rest)
		rest = " 0:00";
	return (*rest == ' ' || *rest == 'T') && when_on_day(rest + 1, &local, ret_ns);
}

int when_since(const char *text, uint64_t now_ns, uint64_t *ret_ns)
{
	uint64_t ns;

	if (text_parse_u64(text, &ns) == 0) {
		*ret_ns = ns;
		return 0;
	}
	if (when_duration(text, &ns)) {
		*ret_ns = now_ns - bits_min(now_ns, ns);
		return 0;
	}
	if (when_time_of_day(text, now_ns, &ns)) {
		*ret_ns = ns > now_ns ? ns - WHEN_DAY : ns;
		return 0;
	}
	return when_date(text, ret_ns) ? 0 : -EINVAL;
}
