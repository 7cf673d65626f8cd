/* SPDX-License-Identifier: Apache-2.0 */

/* A call into the C++ runtime, and cutting what comes back. */

#include "symbol/demangle.h"

#include <string.h>

#include "base/cleanup.h"

/* Of <cxxabi.h>, which C cannot include. */
char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status);

static void demangle_copy(const char *text, char *ret_text, size_t size)
{
	size_t length = strnlen(text, size);

	if (length == size) {
		length = size - 1;
		while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
			length--;
	}
	memcpy(ret_text, text, length);
	ret_text[length] = 0;
}

void demangle_name(const char *name, char *ret_text, size_t size)
{
	CLEANUP_FREE char *decoded = NULL;
	int status = -1;

	if (strncmp(name, "_Z", 2) == 0 && strnlen(name, DEMANGLE_NAME_MAX) < DEMANGLE_NAME_MAX)
		decoded = __cxa_demangle(name, NULL, NULL, &status);
	demangle_copy(decoded && status == 0 ? decoded : name, ret_text, size);
}
