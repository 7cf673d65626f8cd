/* SPDX-License-Identifier: Apache-2.0 */

/* A stack as a list of frames, innermost first, and the frame that stands for it. */

#include "base/cleanup.h"
#include "base/emit.h"
#include "model/json/document.h"
#include "model/sites/frames.h"
#include "model/sites/site.h"

static void document_line(struct emit *json, uint32_t line)
{
	if (line > 0)
		emit_u64(json, "line", line);
	else
		emit_null(json, "line");
}

void document_site_frame(struct emit *json, const struct frames_one *frame)
{
	if (!frame) {
		emit_null(json, "site");
		return;
	}
	emit_open_object(json, "site");
	emit_string(json, "function", frame->function);
	emit_string(json, "file", frame->file);
	document_line(json, frame->line);
	emit_string(json, "module", frame->module);
	emit_close_object(json);
}

void document_site(struct emit *json, const char *stack)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct frames_one frame;

	document_site_frame(json, site_find(&frames, stack, &frame) ? &frame : NULL);
}

void document_frame(struct emit *json, const struct frames_one *frame)
{
	emit_open_object(json, NULL);
	emit_string(json, "function", frame->function);
	emit_string(json, "file", frame->file);
	document_line(json, frame->line);
	emit_string(json, "module", frame->module);
	emit_bool(json, "python", frame->is_python);
	if (frame->build_id)
		emit_string(json, "build_id", frame->build_id);
	if (frame->is_approximate)
		emit_bool(json, "approximate", true);
	if (frame->is_cut)
		emit_bool(json, "cut", true);
	if (frame->is_skipped)
		emit_bool(json, "skipped", true);
	emit_close_object(json);
}

void document_stack(struct emit *json, const char *stack)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct site site = SITE_NULL;
	struct frames_one frame;

	frames_init(&frames, stack);
	emit_open_array(json, "stack");
	while (frames_next(&frames, &frame)) {
		document_frame(json, &frame);
		site_consider(&site, &frame);
	}
	emit_close_array(json);
	document_site_frame(json, site.rank ? &site.frame : NULL);
}
