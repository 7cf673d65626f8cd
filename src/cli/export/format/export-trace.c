/* SPDX-License-Identifier: Apache-2.0 */

/* Frames are printed from the one that stands for the stack on. */

#include "cli/export/format/export-trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/common/must.h"
#include "model/sites/site.h"
#include "model/sites/stack.h"

static void export_trace_print(FILE *out, const struct frame *frame)
{
	const char *where = frame->file ? frame->file : frame->module;

	fputs(frame->file ? "  File \"" : "  Module \"", out);
	text_put_line(out, where ? where : "?");
	fputc('"', out);
	if (frame->file)
		fprintf(out, ", line %" PRIu32, frame->line);
	fputs(", in ", out);
	text_put_line(out, frame->function ? frame->function : "?");
	fputc('\n', out);
}

static bool export_trace_is_plain(const char *path)
{
	size_t left = strlen(path);
	uint32_t character;

	while (left > 0) {
		size_t n = text_decode(path, left, &character);

		if (text_is_harmful(character) || character == '"')
			return false;
		path += n;
		left -= n;
	}
	return true;
}

char *export_trace(const struct stack *stack, char **ret_path)
{
	const struct frame *site = site_find(stack);
	size_t size, first = site ? (size_t)(site - stack->frames) : 0;
	char *text;
	FILE *out = must_have(open_memstream(&text, &size));

	for (size_t i = first; stack && i < stack->count; i++)
		export_trace_print(out, &stack->frames[i]);
	if (fclose(out) != 0)
		must_end();
	*ret_path = site && site->file && export_trace_is_plain(site->file) ? must_copy(site->file)
									    : NULL;
	return text;
}
