/* SPDX-License-Identifier: Apache-2.0 */

/* The fields of a line, and sizes as the old servers rounded them. */

#include "legacy/analyze/log-scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "model/types.h"

#define SCAN_DIGITS "0123456789"
#define SCAN_WORD 32  /* longer than any number and any type */
#define SCAN_WORDS 64 /* longer than the words of any pattern */
#define SCAN_MB (1024.0 * 1024.0)
#define SCAN_MB_MAX 1e9 /* a petabyte: more is no size */

/* Copies so many bytes, and moves on over them. */
static bool scan_word(const char **at, size_t length, char ret_word[SCAN_WORD])
{
	if (length == 0 || length >= SCAN_WORD)
		return false;
	memcpy(ret_word, *at, length);
	ret_word[length] = '\0';
	*at += length;
	return true;
}

static bool scan_number(const char **at, uint64_t *ret_value)
{
	char word[SCAN_WORD];

	return scan_word(at, strspn(*at, SCAN_DIGITS), word) &&
	       text_parse_u64(word, ret_value) == 0;
}

static bool scan_address(const char **at, uint64_t *ret_value)
{
	char word[SCAN_WORD];

	if (strncmp(*at, "0x", 2) != 0)
		return scan_number(at, ret_value);
	return scan_word(at, 2 + strspn(*at + 2, SCAN_DIGITS "abcdefABCDEF"), word) &&
	       text_parse_u64(word, ret_value) == 0;
}

static bool scan_small(const char **at, uint32_t *ret_value)
{
	uint64_t value;

	if (!scan_number(at, &value) || value > INT32_MAX)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

/* One that is none of ours is not known. */
static bool scan_type(const char **at, uint32_t *ret_type)
{
	char word[SCAN_WORD];
	uint64_t number;

	if (!scan_word(at, strcspn(*at, " \t,"), word))
		return false;
	if (text_parse_u64(word, &number) == 0)
		*ret_type = number < BOOK_TYPES ? (uint32_t)number : LOG_READER_NO_TYPE;
	else if (types_parse(word, ret_type) < 0)
		*ret_type = LOG_READER_NO_TYPE;
	return true;
}

/* Half of the last of six digits. */
static double scan_rounded(double mb)
{
	double digit = 1e-5;

	while (mb >= digit * 1e6)
		digit *= 10;
	while (mb > 0 && mb < digit * 1e5)
		digit /= 10;
	return digit / 2;
}

/*
 * The size that was printed with six digits. Several have the same ones; sizes are multiples of some power of
 * two, so it is the one with the highest.
 */
static uint64_t scan_bytes_of(double mb)
{
	/* A little more than half a digit: a size that lies between two of them was rounded, too. */
	double half = scan_rounded(mb) * (1 + 1e-6);
	double low = (mb - half) * SCAN_MB, high = (mb + half) * SCAN_MB;

	if (mb == 0)
		return 0;
	for (uint32_t shift = 52; shift > 0; shift--) {
		double step = (double)(UINT64_C(1) << shift);
		uint64_t least = (uint64_t)(low / step) + 1;

		if ((double)least * step <= high)
			return least << shift;
	}
	return (uint64_t)(mb * SCAN_MB + 0.5);
}

/* As a C++ stream prints a number: six digits, perhaps with an exponent. */
static bool scan_mb(const char **at, uint64_t *ret_bytes, uint64_t *ret_rounded)
{
	const char *p = *at;
	char *end;
	double mb;

	/* Not all that strtod() knows: no blanks, signs, names or hexadecimal. */
	if (*p < '0' || *p > '9' || p[1] == 'x' || p[1] == 'X')
		return false;
	mb = strtod(p, &end);
	if (!(mb >= 0 && mb < SCAN_MB_MAX) || strncmp(end, " MB", 3) != 0)
		return false;
	*at = end + 3;
	*ret_bytes = scan_bytes_of(mb);
	*ret_rounded = (uint64_t)(scan_rounded(mb) * 2 * SCAN_MB) + 1;
	return true;
}

static bool scan_field(char field, const char **at, struct log_reader_event *event)
{
	uint64_t any;

	switch (field) {
	case 'p':
		event->has_pid = true;
		return scan_small(at, &event->pid);
	case 'd':
		return scan_small(at, &event->device) && event->device < BOOK_DEVICES;
	case 'a':
		return scan_address(at, &event->address);
	case 't':
		return scan_type(at, &event->type);
	case 'y':
		if (!scan_small(at, &event->type))
			return false;
		event->type = (uint32_t)bits_min(event->type, LOG_READER_NO_TYPE);
		return true;
	case 's':
	case 'S':
		event->has_size = true;
		return scan_number(at, &event->size) && (event->size > 0 || field == 's');
	case 'm':
		event->has_size = true;
		return scan_mb(at, &event->size, &any);
	case 'M':
		event->has_total = scan_mb(at, &event->total, &event->total_rounded);
		return event->has_total;
	case 'r':
		return scan_small(at, &event->refs);
	case 'c':
		return scan_number(at, &event->count);
	case 'n':
		return scan_number(at, &any);
	case 'e':
		return !**at || **at == ' ';
	default: /* '$' */
		return !**at;
	}
}

/* The literal with which a pattern begins. */
static size_t scan_literal(const char *pattern)
{
	return strcspn(pattern, "%");
}

const char *log_scan_find(const char *line, const char *pattern)
{
	size_t length = scan_literal(pattern);
	char words[SCAN_WORDS];

	assert(length < sizeof(words));
	memcpy(words, pattern, length);
	words[length] = '\0';
	return strstr(line, words);
}

enum log_scan log_scan(const char *at, const char *pattern, struct log_reader_event *event)
{
	enum log_scan failed = LOG_SCAN_OTHER;

	while (*pattern) {
		size_t length = scan_literal(pattern);

		if (strncmp(at, pattern, length) != 0)
			return failed;
		at += length;
		pattern += length;
		if (!*pattern)
			break;
		if (pattern[1] == '!')
			failed = LOG_SCAN_DAMAGED;
		else if (pattern[1] == '?')
			failed = LOG_SCAN_TAKEN;
		else if (pattern[1] == '*')
			at = log_scan_find(at, pattern + 2);
		else if (!scan_field(pattern[1], &at, event))
			return failed;
		if (!at)
			return failed;
		pattern += 2;
	}
	return LOG_SCAN_TAKEN;
}

bool log_scan_is_cut(const char *at, const char *pattern, size_t least)
{
	size_t length = strlen(at);

	return length >= least && length < scan_literal(pattern) &&
	       strncmp(at, pattern, length) == 0;
}
