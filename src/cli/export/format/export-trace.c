/* SPDX-License-Identifier: Apache-2.0 */

/* Frames are read twice: to find the one that stands for the stack, and to print from there on. */

#include "cli/export/format/export-trace.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/must.h"
#include "model/sites/frames.h"
#include "model/sites/site.h"

static bool export_trace_same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool export_trace_is(const struct frame *a, const struct frame *b)
{
	return a->line == b->line && export_trace_same(a->function, b->function) &&
	       export_trace_same(a->file, b->file) && export_trace_same(a->module, b->module);
}

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

/* @out: all frames from @site on. */
static void export_trace_from(FILE *out, const char *stack, const struct frame *site)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct frame frame;
	bool is_begun = site == NULL;

	frames_init(&frames, stack);
	while (frames_next(&frames, &frame)) {
		is_begun = is_begun || export_trace_is(&frame, site);
		if (is_begun)
			export_trace_print(out, &frame);
	}
}

char *export_trace(const char *stack, char **ret_path)
{
	CLEANUP(frames_deinit) struct frames frames = {0};
	struct frame site;
	bool has_site = site_find(&frames, stack, &site);
	char *text;
	size_t size;
	FILE *out = must_have(open_memstream(&text, &size));

	export_trace_from(out, stack, has_site ? &site : NULL);
	if (fclose(out) != 0)
		must_end();
	*ret_path = has_site && site.file && export_trace_is_plain(site.file) ? must_copy(site.file)
									      : NULL;
	return text;
}
