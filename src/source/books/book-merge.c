/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Merges two lists of frames into one stack. A book keeps native and Python frames side by side;
 * each Python frame says how many native ones are outside of it, and thus where it belongs. The
 * frames of the interpreter itself are left out: the Python frames show what it was doing.
 *
 * All of this is the owner's claim. An inconsistent list results in a different order, nothing
 * worse.
 */

#include "source/books/book-private.h"

#include <string.h>

#include "base/bits.h"
#include "book/format/layout.h"
#include "source/books/scan.h"

/* What kind of file a native frame is in. */
enum book_kind {
	BOOK_KIND_OTHER,
	BOOK_KIND_INTERPRETER, /* or its standard library, or our own module for it */
	BOOK_KIND_START,       /* the C library: what comes before main() and thread functions */
};

static bool book_begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static enum book_kind book_kind_of(struct book_reading *reading, const struct book_frame *frame)
{
	const char *path = NULL, *name;
	struct book_module module;

	if (book_module(reading, frame->module, &module) == 0)
		path = book_text(reading, module.path);
	if (!path)
		return BOOK_KIND_OTHER;
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	if (book_begins(name, "libpython3") || book_begins(name, "python3") ||
	    strcmp(name, "python") == 0 || strstr(path, "/lib-dynload/") ||
	    book_begins(name, "_ttmem."))
		return BOOK_KIND_INTERPRETER;
	if (book_begins(name, "libc.") || book_begins(name, "libpthread.") ||
	    book_begins(name, "ld-linux"))
		return BOOK_KIND_START;
	return BOOK_KIND_OTHER;
}

/*
 * How many of the native frames are shown: without those of the C library that start the program or
 * a thread of the interpreter.
 */
static size_t book_native_end(const enum book_kind *kinds, size_t native)
{
	bool is_interpreters = false;
	size_t end = native;

	for (; end > 0 && kinds[end - 1] != BOOK_KIND_OTHER; end--)
		is_interpreters |= kinds[end - 1] == BOOK_KIND_INTERPRETER;
	return is_interpreters ? end : native;
}

/* How many native frames are inside of a Python one. */
static size_t book_inside(const struct book_frame *frame, size_t native)
{
	size_t outside = frame->flags >> BOOK_FRAME_OUTSIDE_SHIFT & 0xff;

	return native - bits_min(outside, native);
}

size_t book_merge(struct book_reading *reading, const struct book_frame *frames, size_t native,
		  size_t count, uint8_t *ret_order)
{
	enum book_kind kinds[BOOK_STACK_FRAMES];
	size_t python, end, n = 0;

	native = end = python = bits_min(native, count);
	if (python < count) {
		for (size_t i = 0; i < native; i++)
			kinds[i] = book_kind_of(reading, &frames[i]);
		end = book_native_end(kinds, native);
	}
	for (size_t i = 0; i < end; i++) {
		while (python < count && book_inside(&frames[python], native) <= i)
			ret_order[n++] = (uint8_t)python++;
		if (native == count || kinds[i] != BOOK_KIND_INTERPRETER)
			ret_order[n++] = (uint8_t)i;
	}
	while (python < count)
		ret_order[n++] = (uint8_t)python++;
	return n;
}
