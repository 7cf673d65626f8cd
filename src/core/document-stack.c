/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stack as a list of frames, innermost first. It comes as one line, "file:line:function -> ...", the
 * outermost first: that is what old clients send and what their reports print. A part without a file is
 * the name of a function, or of a file with an address in it.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "core/document.h"

static const char document_arrow[] = " -> ";

/* Where ":line:" is in a part; NULL = nowhere. */
static char *document_find_line(char *part, char **ret_function, uint64_t *ret_line)
{
	for (char *colon = strchr(part, ':'); colon; colon = strchr(colon + 1, ':')) {
		size_t digits = strspn(colon + 1, "0123456789");

		if (digits == 0 || digits > 9 || colon[1 + digits] != ':')
			continue;
		*ret_line = strtoull(colon + 1, NULL, 10);
		*ret_function = colon + 2 + digits;
		return colon;
	}
	return NULL;
}

static bool document_is_python(const char *file)
{
	const char *dot = strrchr(file, '.');

	/* Code that was typed or made, or is part of the interpreter: "<stdin>", "<frozen runpy>". */
	if (file[0] == '<')
		return true;
	return dot && (strcmp(dot, ".py") == 0 || strcmp(dot, ".pyx") == 0);
}

static void document_frame(struct emit *json, char *part)
{
	char *function = part;
	uint64_t line = 0;
	char *end = document_find_line(part, &function, &line);
	char *approximate = strstr(function, DOCUMENT_APPROXIMATE);

	if (end)
		*end = 0;
	if (approximate)
		*approximate = 0;
	emit_open_object(json, NULL);
	emit_string(json, "function", strcmp(function, "?") == 0 ? NULL : function);
	emit_string(json, "file", end ? part : NULL);
	if (line > 0)
		emit_u64(json, "line", line);
	else
		emit_null(json, "line");
	emit_null(json, "module");
	emit_bool(json, "python", end && document_is_python(part));
	if (approximate)
		emit_bool(json, "approximate", true);
	emit_close_object(json);
}

void document_stack(struct emit *json, const char *stack)
{
	const size_t length = sizeof(document_arrow) - 1;
	CLEANUP_FREE char *copy = stack ? strdup(stack) : NULL; /* without memory: none */
	char *part = copy ? copy + strlen(copy) : NULL;

	emit_open_array(json, "stack");
	while (part && part > copy) {
		if ((size_t)(part - copy) < length ||
		    memcmp(part - length, document_arrow, length) != 0) {
			part--;
			continue;
		}
		document_frame(json, part);
		part -= length;
		*part = 0; /* the end of the next one out */
	}
	if (part && *part)
		document_frame(json, part);
	emit_close_array(json);
}
