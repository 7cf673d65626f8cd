/* SPDX-License-Identifier: Apache-2.0 */

/* Splits the text of a stack into frames. */

#include "legacy/server/legacy-stack.h"

#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/intern.h"
#include "book/write/writer.h"
#include "legacy/wire/legacy.h"
#include "model/sites/stack.h"

#define STACK_PYTHON 1u

static struct book_frame stack_frame(struct writer *writer, char *part)
{
	struct book_frame frame = {.flags = STACK_PYTHON};
	char *function = part, *end = stack_find_line(part, &function, &frame.module);
	uint64_t file = 0;

	if (end && end != part && *function) {
		*end = '\0';
		file = intern_string(writer, part, BOOK_PATH_MAX);
	} else {
		frame.module = 0;
		function = part;
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
			frames[is_native ? n : INTERN_FRAMES_MAX - 1 - n] =
				stack_frame(writer, part);
		n += *part != '\0';
		part = arrow ? arrow + strlen(STACK_ARROW) : NULL;
	}
	return intern_stack(writer, is_native ? frames : frames + INTERN_FRAMES_MAX - n, n);
}
