/* SPDX-License-Identifier: Apache-2.0 */

/* The only place of libttmem-metal.so that prints anything. */

#include "metal/metal-refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool metal_is_refused;

bool metal_refused(void)
{
	return __atomic_load_n(&metal_is_refused, __ATOMIC_RELAXED);
}

/* To standard error in one write, so that lines of several processes do not mix. */
void metal_refuse(const char *format, ...)
{
	static const char head[] = "ttmem: tt-metal is not tracked: ";
	char text[1024];
	size_t length = sizeof(head) - 1;
	va_list arguments;
	int more;

	if (__atomic_exchange_n(&metal_is_refused, true, __ATOMIC_ACQ_REL))
		return;
	memcpy(text, head, length);
	va_start(arguments, format);
	more = vsnprintf(text + length, sizeof(text) - length - 1, format, arguments);
	va_end(arguments);
	if (more > 0)
		length += strlen(text + length); /* cut if it is too long */
	text[length++] = '\n';
	(void)!write(STDERR_FILENO, text, length); /* nobody else to tell */
}
