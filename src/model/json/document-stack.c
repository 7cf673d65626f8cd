/* SPDX-License-Identifier: Apache-2.0 */

/* A stack as a list of frames, innermost first. */

#include "base/cleanup.h"
#include "base/emit.h"
#include "model/frames.h"
#include "model/json/document.h"

void document_stack(struct emit *json, const char *stack)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct frames_one frame;

	frames_init(&frames, stack);
	emit_open_array(json, "stack");
	while (frames_next(&frames, &frame)) {
		emit_open_object(json, NULL);
		emit_string(json, "function", frame.function);
		emit_string(json, "file", frame.file);
		if (frame.line > 0)
			emit_u64(json, "line", frame.line);
		else
			emit_null(json, "line");
		emit_string(json, "module", frame.module);
		emit_bool(json, "python", frame.is_python);
		if (frame.is_approximate)
			emit_bool(json, "approximate", true);
		emit_close_object(json);
	}
	emit_close_array(json);
}
