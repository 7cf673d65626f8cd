/* SPDX-License-Identifier: Apache-2.0 */

/* Cursors as texts: two hexadecimal numbers of 16 digits each. */

#include "daemon/recorder/recorder-cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
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

__attribute__((format(printf, 2, 3))) static void recorder_cursor_note(struct emit *json,
								       const char *format, ...)
{
	char note[192];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(note, sizeof(note), format, arguments); /* fits */
	va_end(arguments);
	emit_string(json, NULL, note);
}

static const char *recorder_cursor_plural(size_t count)
{
	return count == 1 ? "" : "es";
}

static void recorder_cursor_lists(struct emit *json, const struct recorder_missing *missing)
{
	size_t told = bits_min(missing->lists, RECORDER_MISSING_TOLD);

	for (size_t i = 0; i < told; i++) {
		const struct recorder_missing_list *list = &missing->told[i];

		recorder_cursor_note(json,
				     "pid %" PRIu32 ": %" PRIu64 " of its %" PRIu64
				     " buffers are listed; the sums are of all",
				     list->pid, list->listed, list->buffers);
	}
	if (missing->lists > told)
		recorder_cursor_note(json,
				     "%zu more process%s: not all of their buffers are listed; "
				     "the sums are of all",
				     missing->lists - told,
				     recorder_cursor_plural(missing->lists - told));
}

void recorder_cursor_end(struct emit *json, const struct store_cursor *next,
			 const struct recorder_missing *missing)
{
	char text[RECORDER_CURSOR_SIZE];

	emit_bool(json, "exact", !missing->totals_only && !missing->sites && !missing->lists);
	emit_string(json, "next", recorder_cursor_write(next, text));
	emit_open_array(json, "notes");
	if (missing->totals_only)
		recorder_cursor_note(json,
				     "%zu process%s: only tt-metal's region told of it; its "
				     "buffers are not known",
				     missing->totals_only,
				     recorder_cursor_plural(missing->totals_only));
	if (missing->sites)
		recorder_cursor_note(json,
				     "%zu process%s: only the largest call sites are listed; the "
				     "sums are of all",
				     missing->sites, recorder_cursor_plural(missing->sites));
	recorder_cursor_lists(json, missing);
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
}
