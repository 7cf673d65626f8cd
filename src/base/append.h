/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text that is put together in a given room. What does not fit is left out. */

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/bits.h"

struct append {
	char *bytes;
	size_t size;
	size_t length;
};

static inline __attribute__((format(printf, 2, 3))) void append(struct append *text,
								const char *format, ...)
{
	size_t room = text->size - text->length;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(text->bytes + text->length, room, format, arguments);
	va_end(arguments);
	if (n > 0)
		text->length += bits_min((size_t)n, room - 1);
}
