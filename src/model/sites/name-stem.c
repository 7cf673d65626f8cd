/* SPDX-License-Identifier: Apache-2.0 */

/* Names without their numbers. */

#include "model/sites/name-stem.h"

#include <stdbool.h>

#include "base/bits.h"

static inline bool name_stem_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The next character of a stem, 0 at the end; moves on. */
static inline unsigned char name_stem_next(const char **at)
{
	unsigned char c = (unsigned char)**at;

	if (!name_stem_is_digit(**at)) {
		*at += c != '\0';
		return c;
	}
	while (name_stem_is_digit(**at))
		(*at)++;
	return NAME_STEM_NUMBER;
}

const char *name_stem(const char *name, char *ret_text, size_t size)
{
	size_t n = 0;
	char c;

	while (n + 1 < size && (c = (char)name_stem_next(&name)))
		ret_text[n++] = c;
	ret_text[n] = '\0';
	return ret_text;
}

int name_stem_compare(const char *a, const char *b)
{
	unsigned char x, y;

	if (!a || !b || a == b)
		return (a != NULL && a != b) - (b != NULL && a != b);
	do {
		x = name_stem_next(&a);
		y = name_stem_next(&b);
	} while (x && x == y);
	return bits_compare(x, y);
}

uint64_t name_stem_hash(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	unsigned char c;

	while (name && (c = name_stem_next(&name)))
		hash = (hash ^ c) * UINT64_C(0x100000001b3);
	return hash;
}
