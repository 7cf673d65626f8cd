/* SPDX-License-Identifier: Apache-2.0 */

/* A stack as a list of frames, innermost first, and the frame that stands for it. */

#include "answers/document.h"
#include "base/emit.h"
#include "model/sites/site.h"
#include "model/sites/stack.h"

static void document_line(struct emit *json, uint32_t line)
{
	if (line > 0)
		emit_u64(json, "line", line);
	else
		emit_null(json, "line");
}

static void document_place(struct emit *json, const char *key, const struct frame *frame)
{
	emit_open_object(json, key);
	emit_string(json, "function", frame->function);
	emit_string(json, "file", frame->file);
	document_line(json, frame->line);
	emit_string(json, "module", frame->module);
}

/* A member of a site; NULL = not known. */
static void document_site_member(struct emit *json, const char *key, const struct frame *frame)
{
	if (frame) {
		document_place(json, key, frame);
		emit_close_object(json);
	} else {
		emit_null(json, key);
	}
}

void document_site_put(struct emit *json, const struct site *site)
{
	if (!site->rank) {
		emit_null(json, "site");
		return;
	}
	document_place(json, "site", &site->frame);
	document_site_member(json, "user", site->user_rank ? &site->user : NULL);
	document_site_member(json, "via", site->has_via ? &site->via : NULL);
	emit_open_array(json, "callers");
	for (unsigned int i = 0; i < site->caller_count; i++)
		document_site_member(json, NULL, &site->callers[i]);
	emit_close_array(json);
	emit_close_object(json);
}

void document_site(struct emit *json, const struct stack *stack)
{
	struct site site;

	(void)site_choose(stack, &site); /* without one it is null */
	document_site_put(json, &site);
}

void document_frame(struct emit *json, const struct frame *frame)
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

void document_stack(struct emit *json, const struct stack *stack)
{
	struct site site;

	emit_open_array(json, "stack");
	for (size_t i = 0; stack && i < stack->count; i++)
		document_frame(json, &stack->frames[i]);
	emit_close_array(json);
	(void)site_choose(stack, &site); /* without one it is null */
	document_site_put(json, &site);
}
