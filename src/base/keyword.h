/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Words in settings, as people write them: in any case, with or without surrounding blanks. Not
 * with libc's functions, whose notion of case depends on the locale.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* @word in lower case. */
static inline bool keyword_is(const char *text, size_t length, const char *word)
{
	while (length > 0 && (*text == ' ' || *text == '\t')) {
		text++;
		length--;
	}
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	if (strlen(word) != length)
		return false;
	for (size_t i = 0; i < length; i++) {
		char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];

		if (c != word[i])
			return false;
	}
	return true;
}

/* An empty word means no. */
static inline bool keyword_is_no(const char *text, size_t length)
{
	return keyword_is(text, length, "off") || keyword_is(text, length, "0") ||
	       keyword_is(text, length, "no") || keyword_is(text, length, "none") ||
	       keyword_is(text, length, "");
}

static inline bool keyword_is_yes(const char *text, size_t length)
{
	return keyword_is(text, length, "on") || keyword_is(text, length, "1") ||
	       keyword_is(text, length, "yes");
}

/* A whole number from 1 to @max; 0 = invalid. */
static inline uint32_t keyword_number(const char *text, uint32_t max)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9' && value <= max; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return *text || value > max ? 0 : (uint32_t)value;
}
