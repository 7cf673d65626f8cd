/* SPDX-License-Identifier: Apache-2.0 */

/* Cursors as texts: two hexadecimal numbers of 16 digits each. */

#include "daemon/recorder/recorder-cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
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

__attribute__((format(printf, 2, 3))) static void recorder_note(struct recorder_notes *notes,
								const char *format, ...)
{
	char *text = notes->room[notes->count];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(notes->room[0]), format, arguments); /* fits */
	va_end(arguments);
	notes->texts[notes->count++] = text;
}

static const char *recorder_cursor_plural(size_t count)
{
	return count == 1 ? "" : "es";
}

void recorder_cursor_notes(const struct recorder_missing *missing, struct recorder_notes *notes)
{
	size_t told = bits_min(missing->lists, RECORDER_MISSING_TOLD);

	notes->count = 0;
	if (missing->totals_only)
		recorder_note(notes,
			      "%zu process%s: only tt-metal's region told of it; its buffers are "
			      "not known",
			      missing->totals_only, recorder_cursor_plural(missing->totals_only));
	if (missing->sites)
		recorder_note(notes,
			      "%zu process%s: only the largest call sites are listed; the sums are "
			      "of all",
			      missing->sites, recorder_cursor_plural(missing->sites));
	for (size_t i = 0; i < told; i++) {
		const struct recorder_missing_list *list = &missing->told[i];

		recorder_note(notes,
			      "pid %" PRIu32 ": %" PRIu64 " of its %" PRIu64
			      " buffers are listed; the sums are of all",
			      list->pid, list->listed, list->buffers);
	}
	if (missing->lists > told)
		recorder_note(notes,
			      "%zu more process%s: not all of their buffers are listed; the sums "
			      "are of all",
			      missing->lists - told, recorder_cursor_plural(missing->lists - told));
}
