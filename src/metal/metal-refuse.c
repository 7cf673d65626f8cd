/* SPDX-License-Identifier: Apache-2.0 */

/* The only place of libttmem-metal.so that prints anything; the book says the same. */

#include "metal/metal-refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

static bool metal_is_refused;
static char metal_reason[1024]; /* written once, by who set the flag */
static bool metal_has_reason;

bool metal_refused(void)
{
	return __atomic_load_n(&metal_is_refused, __ATOMIC_RELAXED);
}

/* What everybody may read names the library without its folders. */
static const char *metal_refusal_without_folder(const char *reason)
{
	const char *name = reason;

	for (const char *at = reason; *reason == '/' && *at && *at != ' '; at++) {
		if (*at == '/')
			name = at + 1;
	}
	return name;
}

void metal_refusal_to_book(void)
{
	if (__atomic_load_n(&metal_has_reason, __ATOMIC_ACQUIRE))
		ttmem_give_up(metal_refusal_without_folder(metal_reason));
}

/* To standard error in one write, so that lines of several processes do not mix. */
void metal_refuse(const char *format, ...)
{
	char text[sizeof(metal_reason) + 64];
	va_list arguments;
	int length;

	if (__atomic_exchange_n(&metal_is_refused, true, __ATOMIC_ACQ_REL))
		return;
	va_start(arguments, format);
	(void)vsnprintf(metal_reason, sizeof(metal_reason), format,
			arguments); /* cut if too long */
	va_end(arguments);
	__atomic_store_n(&metal_has_reason, true, __ATOMIC_RELEASE);
	metal_refusal_to_book();
	length = snprintf(text, sizeof(text), "ttmem: tt-metal is not tracked: %s\n", metal_reason);
	(void)!write(STDERR_FILENO, text, (size_t)length); /* nobody else to tell */
}
