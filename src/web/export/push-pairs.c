/* SPDX-License-Identifier: Apache-2.0 */

/*
 * "name=value,name=value", as in the OTEL_ variables: white space around is ignored, %XX is a byte.
 */

#include <errno.h>
#include <string.h>

#include "web/export/push-private.h"

#define PAIRS_BLANKS " \t"

static int pairs_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static char *pairs_trim(char *text)
{
	size_t length;

	text += strspn(text, PAIRS_BLANKS);
	length = strlen(text);
	while (length > 0 && strchr(PAIRS_BLANKS, text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* In place. A byte that could end a line or the text is refused: one header would become two. */
static int pairs_decode(char *text)
{
	char *to = text;

	while (*text) {
		unsigned char byte = (unsigned char)*text++;

		if (byte == '%') {
			int high = pairs_digit(*text);
			int low = high < 0 ? -1 : pairs_digit(text[1]);

			if (low < 0)
				return -EINVAL;
			byte = (unsigned char)(high * 16 + low);
			text += 2;
		}
		if (byte < 0x20 || byte == 0x7f)
			return -EINVAL;
		*to++ = (char)byte;
	}
	*to = '\0';
	return 0;
}

/* Takes the next pair from @rest, which is modified. Return: 1, 0 = no more, or -EINVAL. */
int push_pairs_next(char **rest, const char **ret_name, const char **ret_value)
{
	char *word, *equals, *name, *value;

	do {
		word = strsep(rest, ",");
		if (!word)
			return 0;
		word = pairs_trim(word);
	} while (!*word);
	equals = strchr(word, '=');
	if (!equals)
		return -EINVAL;
	*equals = '\0';
	name = pairs_trim(word);
	value = pairs_trim(equals + 1);
	if (!*name || pairs_decode(name) < 0 || pairs_decode(value) < 0)
		return -EINVAL;
	*ret_name = name;
	*ret_value = value;
	return 1;
}
