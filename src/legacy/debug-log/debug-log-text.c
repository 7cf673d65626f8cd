/* SPDX-License-Identifier: Apache-2.0 */

/* Words, numbers and dates of the old logs, formatted without locks or locale. */

#include "legacy/debug-log/debug-log-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"

static const char *const text_types[BOOK_TYPES] = {
#define TTMEM_TYPE(number, name, ...) [number] = #name,
#include <ttmem/types.def>
};

const char *debug_log_text_type(uint32_t type)
{
	return type < BOOK_TYPES ? text_types[type] : "unknown";
}

const char *debug_log_text_short_type(uint32_t type)
{
	if (type == TTMEM_DRAM || type == TTMEM_L1 || type == TTMEM_L1_SMALL)
		return text_types[type];
	return type < BOOK_TYPES ? "OTHER" : "unknown";
}

/* The length of the next word of a list, to which @list is moved. 0 at the end. */
static size_t text_word(const char **list)
{
	*list += strspn(*list, ", ");
	return strcspn(*list, ", ");
}

static void text_filter_device(struct debug_log_filter *filter, const char *word, size_t length)
{
	uint32_t device = 0;

	for (size_t i = 0; i < length; i++) {
		if (word[i] < '0' || word[i] > '9' || device >= BOOK_DEVICES)
			return;
		device = device * 10 + (uint32_t)(word[i] - '0');
	}
	if (device >= BOOK_DEVICES)
		return;
	filter->devices[device / 8] |= (uint8_t)(1u << device % 8);
	filter->has_devices = true;
}

static void text_filter_type(struct debug_log_filter *filter, const char *word, size_t length)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (strlen(text_types[type]) != length ||
		    strncasecmp(text_types[type], word, length) != 0)
			continue;
		filter->types |= 1u << type;
		filter->has_types = true;
	}
}

void debug_log_text_filter(struct debug_log_filter *filter, const char *devices, const char *types)
{
	size_t length;

	*filter = (struct debug_log_filter){.has_devices = false};
	for (; devices && (length = text_word(&devices)); devices += length)
		text_filter_device(filter, devices, length);
	for (; types && (length = text_word(&types)); types += length)
		text_filter_type(filter, types, length);
}

bool debug_log_text_wants(const struct debug_log_filter *filter, uint32_t device, uint32_t type)
{
	if (filter->has_devices &&
	    (device >= BOOK_DEVICES || !(filter->devices[device / 8] >> device % 8 & 1)))
		return false;
	return !filter->has_types || type >= BOOK_TYPES || filter->types >> type & 1;
}

/* @n / @d, rounded to nearest, ties to even. */
static uint64_t text_round(unsigned __int128 n, unsigned __int128 d)
{
	unsigned __int128 q = n / d, rest = n % d;

	return (uint64_t)(q + (2 * rest > d || (2 * rest == d && (q & 1))));
}

/* Six significant digits of @size / 1024, and the power of ten of the first one. @size is not 0. */
static uint64_t text_digits(uint64_t size, int *ret_exponent)
{
	/* Scaled by ten thousand: the smallest value, 9.77 for one byte, then has exponent 0. */
	unsigned __int128 n = (unsigned __int128)size * 10000, d = 1024, limit = d * 10;
	int exponent = 0;
	uint64_t digits;

	for (; n >= limit; limit *= 10)
		exponent++;
	for (int i = exponent; i < 5; i++)
		n *= 10;
	for (int i = 5; i < exponent; i++)
		d *= 10;
	digits = text_round(n, d);
	if (digits == 1000000) {
		digits = 100000;
		exponent++;
	}
	*ret_exponent = exponent - 4;
	return digits;
}

const char *debug_log_text_kb(uint64_t size, char ret_text[DEBUG_LOG_TEXT_NUMBER])
{
	int exponent = 0, count = 6, n = 0;
	char digits[16];

	(void)snprintf(digits, sizeof(digits), "%06" PRIu64,
		       size ? text_digits(size, &exponent) : 0); /* six digits */
	while (count > 1 && digits[count - 1] == '0')
		count--;
	if (exponent >= 6) {
		(void)snprintf(ret_text, DEBUG_LOG_TEXT_NUMBER, "%c%s%.*se+%02d", digits[0],
			       count > 1 ? "." : "", count - 1, digits + 1, exponent);
		return ret_text;
	}
	for (int i = exponent; i < 0; i++)
		n += snprintf(ret_text + n, DEBUG_LOG_TEXT_NUMBER - (size_t)n,
			      i == exponent ? "0." : "0");
	for (int i = 0; i < count || i <= exponent; i++) {
		if (exponent >= 0 && i == exponent + 1)
			ret_text[n++] = '.';
		ret_text[n++] = i < count ? digits[i] : '0';
	}
	ret_text[n] = '\0';
	return ret_text;
}

static bool text_is_leap(int64_t year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

const char *debug_log_text_date(int64_t seconds, char ret_text[DEBUG_LOG_TEXT_NUMBER])
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int64_t days, year = 1970;
	size_t month = 0;

	/* No system clock in use is outside this range. */
	seconds = seconds < 0 ? 0 : (int64_t)bits_min((uint64_t)seconds, UINT32_MAX);
	days = seconds / 86400;
	for (; days >= 365 + text_is_leap(year); year++)
		days -= 365 + text_is_leap(year);
	for (; days >= lengths[month] + (month == 1 && text_is_leap(year)); month++)
		days -= lengths[month] + (month == 1 && text_is_leap(year));
	(void)snprintf(ret_text, DEBUG_LOG_TEXT_NUMBER, "%04d-%02d-%02d %02d:%02d:%02d", (int)year,
		       (int)month + 1, (int)days + 1, (int)(seconds / 3600 % 24),
		       (int)(seconds / 60 % 60), (int)(seconds % 60));
	return ret_text;
}
