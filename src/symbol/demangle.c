/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls the C++ runtime and cuts the result to size.
 *
 * The runtime refuses names longer than 1024 bytes, because it may recurse once per byte. Most of a
 * long name is identifiers, such as "12load_weights", and those cause no recursion. So in a refused
 * name each identifier is replaced by a short one that no compiler generates, and put back into the
 * result. Digits can also be a number, of an array or a constant. A number is followed by "E" or
 * "_" and no replacement begins with either, so a mistake makes the name invalid; the name is then
 * tried once more without the doubtful identifiers.
 */

#include "symbol/demangle.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/process/late-library.h"

#define DEMANGLE_WORTH 5u  /* bytes; shorter identifiers are kept */
#define DEMANGLE_MARK '\1' /* a replacement: this mark, then two base-64 digits counted from '0' */
#define DEMANGLE_SHORT 3u  /* length of a replacement */
#define DEMANGLE_IDENTIFIERS 512u /* per name; further ones are kept */

/* From <cxxabi.h>, which C cannot include. */
char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status);

/* An identifier in the given name. */
struct demangle_part {
	const char *text;
	size_t length;
};

struct demangle_parts {
	bool is_careful; /* leave alone what may be a number */
	uint32_t count;
	struct demangle_part list[DEMANGLE_IDENTIFIERS];
};

static void demangle_copy(const char *text, char *ret_text, size_t size)
{
	size_t length = strnlen(text, size);

	if (length == size) {
		length = size - 1;
		while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(ret_text, text, length);
	ret_text[length] = 0;
}

static char *demangle_call(const char *name)
{
	static const char *const libraries[] = {"libstdc++.so.6"};
	static __typeof__(__cxa_demangle) *call;
	void *library = call ? NULL : late_library_open(libraries, ARRAY_SIZE(libraries));
	int status = -1;

	if (library)
		call = LATE_LIBRARY_CALL(library, __cxa_demangle);
	return call ? call(name, NULL, NULL, &status) : NULL; /* NULL on every failure */
}

/* Whether @text begins with a length and an identifier of that length. */
static bool demangle_is_part(const struct demangle_parts *parts, const char *text,
			     struct demangle_part *ret_part)
{
	size_t length = 0;

	for (; *text >= '0' && *text <= '9' && length < DEMANGLE_NAME_MAX; text++)
		length = length * 10 + (size_t)(*text - '0');
	if (length == 0 || strnlen(text, length) < length)
		return false;
	if (parts->is_careful && (*text == 'E' || *text == '_'))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && text[i] != '_' &&
		    (unsigned char)text[i] < 0x80)
			return false;
	}
	*ret_part = (struct demangle_part){.text = text, .length = length};
	return true;
}

/* The index of @part in the list; DEMANGLE_IDENTIFIERS if it must be kept. */
static uint32_t demangle_number(struct demangle_parts *parts, const struct demangle_part *part)
{
	/* "_GLOBAL_" means an anonymous namespace to the runtime. */
	if (part->length < DEMANGLE_WORTH || strncmp(part->text, "_GLOBAL_", 8) == 0)
		return DEMANGLE_IDENTIFIERS;
	for (uint32_t i = 0; i < parts->count; i++) {
		if (parts->list[i].length == part->length &&
		    memcmp(parts->list[i].text, part->text, part->length) == 0)
			return i;
	}
	if (parts->count < DEMANGLE_IDENTIFIERS)
		parts->list[parts->count++] = *part;
	else
		return DEMANGLE_IDENTIFIERS;
	return parts->count - 1;
}

/* @ret_text has room for DEMANGLE_NAME_MAX: no part becomes longer. */
static void demangle_shorten(struct demangle_parts *parts, const char *name, char *ret_text)
{
	char *to = ret_text;

	while (*name) {
		struct demangle_part part = {.text = name, .length = 1};
		bool is_part = *name >= '0' && *name <= '9' && demangle_is_part(parts, name, &part);
		uint32_t number = is_part ? demangle_number(parts, &part) : DEMANGLE_IDENTIFIERS;
		const char *end = part.text + part.length;

		if (number < DEMANGLE_IDENTIFIERS) {
			*to++ = '0' + DEMANGLE_SHORT;
			*to++ = DEMANGLE_MARK;
			*to++ = (char)('0' + number / 64);
			*to++ = (char)('0' + number % 64);
		} else {
			/* Copy all digits of a number at once: its tail is not a length. */
			if (!is_part)
				end += strspn(name, "0123456789") - (*name >= '0' && *name <= '9');
			memcpy(to, name, (size_t)(end - name));
			to += end - name;
		}
		name = end;
	}
	*to = '\0';
}

/* Puts the identifiers back, cut to @size. False: the text contains a mark that is not ours. */
static bool demangle_restore(const struct demangle_parts *parts, const char *text, char *ret_text,
			     size_t size)
{
	size_t at = 0;

	while (*text && at < size - 1) {
		struct demangle_part part = {.text = text, .length = strcspn(text, "\1")};

		text += part.length;
		if (part.length == 0) {
			uint32_t number = UINT32_MAX;

			if (text[1] >= '0' && text[2] >= '0')
				number = (uint32_t)(text[1] - '0') * 64 + (uint32_t)(text[2] - '0');
			if (number >= parts->count)
				return false;
			part = parts->list[number];
			text += DEMANGLE_SHORT;
		}
		if (part.length > size - 1 - at)
			part.length = size - 1 - at;
		memcpy(ret_text + at, part.text, part.length);
		at += part.length;
	}
	ret_text[at] = '\0';
	return true;
}

/* False: this did not help either. */
static bool demangle_long(const char *name, bool is_careful, char *ret_text, size_t size)
{
	struct demangle_parts parts = {.is_careful = is_careful};
	char shortened[DEMANGLE_NAME_MAX];
	CLEANUP_FREE char *decoded = NULL;

	if (strchr(name, DEMANGLE_MARK))
		return false;
	demangle_shorten(&parts, name, shortened);
	decoded = demangle_call(shortened);
	return decoded && demangle_restore(&parts, decoded, ret_text, size);
}

void demangle_name(const char *name, char *ret_text, size_t size)
{
	CLEANUP_FREE char *decoded = NULL;

	if (strncmp(name, "_Z", 2) == 0 && strnlen(name, DEMANGLE_NAME_MAX) < DEMANGLE_NAME_MAX) {
		decoded = demangle_call(name);
		if (!decoded && (demangle_long(name, false, ret_text, size) ||
				 demangle_long(name, true, ret_text, size)))
			return;
	}
	demangle_copy(decoded ? decoded : name, ret_text, size);
}
