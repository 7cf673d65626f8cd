/* SPDX-License-Identifier: Apache-2.0 */

/* Cursors as texts: two hexadecimal numbers of 16 digits each. */

#include "daemon/past-cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/store.h"

#define PAST_CURSOR_LENGTH 33

const char *past_cursor_write(const struct store_cursor *cursor, char ret_text[PAST_CURSOR_SIZE])
{
	if (!cursor->more)
		return NULL;
	(void)snprintf(ret_text, PAST_CURSOR_SIZE, "%016" PRIx64 "-%016" PRIx64,
		       (uint64_t)cursor->major, (uint64_t)cursor->minor);
	return ret_text;
}

/* Exactly 16 digits. */
static int past_cursor_number(const char *text, int64_t *ret_number)
{
	uint64_t number = 0;

	for (int i = 0; i < 16; i++) {
		const char *digits = "0123456789abcdef";
		const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

		if (!digit)
			return -EINVAL;
		number = number << 4 | (uint64_t)(digit - digits);
	}
	if (number > INT64_MAX)
		return -EINVAL;
	*ret_number = (int64_t)number;
	return 0;
}

int past_cursor_read(const char *text, struct store_cursor *ret_cursor)
{
	struct store_cursor cursor = {0};

	if (text && *text &&
	    (strlen(text) != PAST_CURSOR_LENGTH || text[16] != '-' ||
	     past_cursor_number(text, &cursor.major) < 0 ||
	     past_cursor_number(text + 17, &cursor.minor) < 0))
		return -EINVAL;
	*ret_cursor = cursor;
	return 0;
}
