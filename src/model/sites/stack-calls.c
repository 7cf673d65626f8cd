/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks without the parts that change from build to build; stack.h says what remains. */

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "model/sites/stack.h"

static const char *calls_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool calls_begins(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Whether the folder that contains the file is called @name. */
static bool calls_lies_in(const char *file, const char *name)
{
	const char *base = calls_base(file);
	size_t length = strlen(name);

	return (size_t)(base - file) > length && memcmp(base - 1 - length, name, length) == 0 &&
	       (base - 1 - length == file || base[-2 - (ptrdiff_t)length] == '/');
}

/* Left out, because another version of the harness has other frames. */
static bool calls_is_harness(const struct frame *frame)
{
	return frame->is_python && frame->file &&
	       (calls_lies_in(frame->file, "_pytest") || calls_lies_in(frame->file, "pluggy"));
}

static bool calls_is_libc(const struct frame *frame)
{
	const char *module = frame->module ? calls_base(frame->module) : "";

	return calls_begins(module, "libc.so") || calls_begins(module, "libpthread.so");
}

/* Compilers append suffixes to functions they split or specialise. */
static size_t calls_name_length(const char *function)
{
	static const char *const endings[] = {".constprop.", ".isra.", ".part.", ".cold",
					      ".lto_priv."};
	size_t length = strlen(function);

	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		const char *ending = strstr(function, endings[i]);

		if (ending && ending != function)
			length = bits_min(length, (size_t)(ending - function));
	}
	return length;
}

/* Symbols from old clients, "lib.so(name+0x1f) [0x7f0012]", without the numbers. */
static size_t calls_symbol_length(const char *symbol)
{
	size_t length = strlen(symbol);
	const char *plus = strstr(symbol, "+0x"), *bracket = strstr(symbol, " [0x");

	if (plus)
		length = bits_min(length, (size_t)(plus - symbol));
	if (bracket)
		length = bits_min(length, (size_t)(bracket - symbol));
	return length;
}

/* One frame. @last: the module that the text ends with, if that frame had no name. */
static size_t calls_put(const struct frame *frame, const char **last, char *text, size_t size,
			size_t used)
{
	const char *path = frame->file ? frame->file : frame->module;
	const char *place = path ? calls_base(path) : "", *function = "";
	size_t length = 0;
	int n;

	if (frame->function && !frame_is_address(frame)) {
		function = frame->function;
		length = path ? calls_name_length(function) : calls_symbol_length(function);
	} else if (*last && strcmp(*last, place) == 0) {
		return used;
	}
	*last = length ? NULL : place;
	n = snprintf(text + used, size - used, "%s%s%s%.*s", used ? STACK_CALLED_BY : "", place,
		     path && length ? ":" : "", (int)length, function);
	return n < 0 ? used : bits_min(used + (size_t)n, size - 1);
}

const char *stack_calls(const struct stack *stack, char *ret_text, size_t size)
{
	const char *last = NULL;
	size_t used = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; stack && i < stack->count; i++) {
		const struct frame *frame = &stack->frames[i];

		if (calls_is_harness(frame))
			break;
		if (calls_is_libc(frame))
			continue;
		used = calls_put(frame, &last, ret_text, size, used);
		if (!frame->is_python && frame->function && strcmp(frame->function, "main") == 0)
			break;
	}
	return ret_text;
}
