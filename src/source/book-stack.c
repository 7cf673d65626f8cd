/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stacks as people read them: one line, the outermost frame first, as old clients sent them. Only Python
 * frames have names in the book; native ones need the ELF file and are left out here.
 */

#include "source/book-reading.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "source/scan.h"

#define BOOK_STACK_FRAMES 64u
#define BOOK_STACK_TEXT POOL_TEXT_MAX
#define BOOK_FRAME_PYTHON 1u

struct book_line {
	char text[BOOK_STACK_TEXT];
	size_t length;
};

static void book_line_add(struct book_line *line, const char *text)
{
	size_t length = bits_min(strlen(text), sizeof(line->text) - line->length);

	memcpy(line->text + line->length, text, length);
	line->length += length;
}

static void book_line_add_frame(struct book_line *line, struct book_reading *reading,
				const struct book_frame *frame)
{
	const char *function = book_text(reading, (uint32_t)(frame->value >> 32));
	const char *file = book_text(reading, (uint32_t)frame->value);
	char number[16];

	if (!function && !file)
		return;
	if (line->length > 0)
		book_line_add(line, " -> ");
	if (file) {
		(void)snprintf(number, sizeof(number), ":%" PRIu32 ":", frame->module);
		book_line_add(line, file);
		book_line_add(line, number);
	}
	book_line_add(line, function ? function : "?");
}

const char *book_stack_text(struct book_reading *reading, uint32_t id)
{
	struct book_frame frames[BOOK_STACK_FRAMES];
	struct book_line line;
	struct book_stack head;
	size_t count;

	if (id == 0)
		return NULL;
	if (reading->stack.id == id)
		return reading->stack.text;
	line.length = 0;
	count = reader_stack(&reading->book->reader, id, &head, frames, BOOK_STACK_FRAMES);
	while (count-- > 0) {
		if (frames[count].flags & BOOK_FRAME_PYTHON)
			book_line_add_frame(&line, reading, &frames[count]);
	}
	reading->stack.id = id;
	reading->stack.text =
		line.length ? snapshot_text(reading->snapshot, line.text, line.length) : NULL;
	return reading->stack.text;
}
