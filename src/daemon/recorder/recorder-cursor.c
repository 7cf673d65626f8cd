/* SPDX-License-Identifier: Apache-2.0 */

/* Cursors as texts: two hexadecimal numbers of 16 digits each. */

#include "daemon/recorder/recorder-cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/emit.h"
#include "store/store.h"

#define RECORDER_CURSOR_LENGTH 33

const char *recorder_cursor_write(const struct store_cursor *cursor,
				  char ret_text[RECORDER_CURSOR_SIZE])
{
	if (!cursor->more)
		return NULL;
	(void)snprintf(ret_text, RECORDER_CURSOR_SIZE, "%016" PRIx64 "-%016" PRIx64,
		       (uint64_t)cursor->major, (uint64_t)cursor->minor);
	return ret_text;
}

/* Exactly 16 digits. */
static int recorder_cursor_number(const char *text, int64_t *ret_number)
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

int recorder_cursor_read(const char *text, struct store_cursor *ret_cursor)
{
	struct store_cursor cursor = {0};

	if (text && *text &&
	    (strlen(text) != RECORDER_CURSOR_LENGTH || text[16] != '-' ||
	     recorder_cursor_number(text, &cursor.major) < 0 ||
	     recorder_cursor_number(text + 17, &cursor.minor) < 0))
		return -EINVAL;
	*ret_cursor = cursor;
	return 0;
}

void recorder_cursor_end(struct emit *json, const struct store_cursor *next, size_t totals_only)
{
	char text[RECORDER_CURSOR_SIZE], note[128];

	emit_bool(json, "exact", totals_only == 0);
	emit_string(json, "next", recorder_cursor_write(next, text));
	emit_open_array(json, "notes");
	if (totals_only) {
		(void)snprintf(note, sizeof(note),
			       "%zu process%s: only tt-metal's region told of it; its buffers are "
			       "not known",
			       totals_only, totals_only == 1 ? "" : "es");
		emit_string(json, NULL, note);
	}
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
}
