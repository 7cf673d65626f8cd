/* SPDX-License-Identifier: Apache-2.0 */

/* Splits the text of a stack into frames. */

#include "compat/server/legacy-stack.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/intern.h"
#include "book/write/writer.h"
#include "compat/wire/legacy.h"

#define STACK_ARROW " -> "
#define STACK_PYTHON 1u

/* The colon before the line number, if there is one between two colons; NULL = not of that form. */
static char *stack_find_line(char *part)
{
	for (char *colon = strchr(part, ':'); colon; colon = strchr(colon + 1, ':')) {
		size_t digits = strspn(colon + 1, "0123456789");

		if (colon != part && digits > 0 && digits < 10 && colon[1 + digits] == ':' &&
		    colon[2 + digits] != '\0')
			return colon;
	}
	return NULL;
}

static struct book_frame stack_frame(struct writer *writer, char *part)
{
	struct book_frame frame = {.flags = STACK_PYTHON};
	char *line = stack_find_line(part);
	const char *function = part;
	uint64_t file = 0;

	if (line) {
		char *after;

		*line = '\0';
		file = intern_string(writer, part, BOOK_PATH_MAX);
		frame.module = (uint32_t)strtoul(line + 1, &after, 10);
		function = after + 1;
	}
	frame.value = (uint64_t)intern_string(writer, function, BOOK_PATH_MAX) << 32 | file;
	return frame;
}

/* Whether backtrace_symbols() wrote it: it ends with the address in brackets. The last part may be cut. */
static bool stack_is_native(const char *part)
{
	size_t length = strlen(part);
	const char *bracket = strstr(part, " [0x");

	return bracket && part[length - 1] == ']';
}

static void stack_reverse(struct book_frame *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct book_frame frame = frames[i];

		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = frame;
	}
}

uint32_t legacy_stack_intern(struct writer *writer, const char *text, size_t length)
{
	struct book_frame frames[INTERN_FRAMES_MAX];
	char copy[LEGACY_STACK_SIZE + 1];
	char *part = copy;
	bool is_native = false;
	size_t n = 0;

	if (length == 0)
		return 0;
	length = bits_min(length, LEGACY_STACK_SIZE);
	memcpy(copy, text, length);
	copy[length] = '\0';
	while (part && n < INTERN_FRAMES_MAX) {
		char *arrow = strstr(part, STACK_ARROW);

		if (arrow && n + 1 < INTERN_FRAMES_MAX)
			*arrow = '\0';
		if (*part && n == 0)
			is_native = stack_is_native(part);
		if (*part)
			frames[n++] = stack_frame(writer, part);
		part = arrow ? arrow + strlen(STACK_ARROW) : NULL;
	}
	if (!is_native)
		stack_reverse(frames, n);
	return intern_stack(writer, frames, n);
}
