/* SPDX-License-Identifier: Apache-2.0 */

/* Members are named as src/answers/call-stack.c writes them. */

#include "cli/common/site-json.h"

#include "base/bits.h"

static const char *site_json_text(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

struct frame site_json_frame(const json_t *row)
{
	return (struct frame){
		.function = site_json_text(row, "function"),
		.file = site_json_text(row, "file"),
		.module = site_json_text(row, "module"),
		.line = (uint32_t)json_integer_value(json_object_get(row, "line")),
		.is_python = json_is_true(json_object_get(row, "python")),
		.is_cut = json_is_true(json_object_get(row, "cut")),
		.is_skipped = json_is_true(json_object_get(row, "skipped")),
	};
}

const struct stack *site_json_stack(struct pool *texts, const json_t *stack)
{
	struct stack_maker maker = STACK_MAKER_INIT(texts);

	for (size_t i = 0; i < json_array_size(stack); i++) {
		const struct frame frame = site_json_frame(json_array_get(stack, i));

		stack_maker_add(&maker, &frame);
	}
	return stack_maker_finish(&maker);
}

struct site site_json_read(const json_t *site)
{
	const json_t *user = json_object_get(site, "user"), *via = json_object_get(site, "via");
	const json_t *callers = json_object_get(site, "callers");
	struct site read = {
		.frame = site_json_frame(site),
		.rank = json_is_object(site),
		.user = site_json_frame(user),
		.user_rank = json_is_object(user),
		.via = site_json_frame(via),
		.has_via = json_is_object(via),
		.caller_count = (unsigned int)bits_min(json_array_size(callers), SITE_CALLERS),
	};

	for (unsigned int i = 0; i < read.caller_count; i++)
		read.callers[i] = site_json_frame(json_array_get(callers, i));
	return read;
}

static json_t *site_json_place(const struct frame *frame)
{
	return json_pack("{s:s?, s:s?, s:o, s:s?}", "function", frame->function, "file",
			 frame->file, "line", frame->line ? json_integer(frame->line) : json_null(),
			 "module", frame->module);
}

json_t *site_json_new(const struct site *site)
{
	json_t *row = site_json_place(&site->frame), *callers = json_array();

	for (unsigned int i = 0; i < site->caller_count; i++)
		(void)json_array_append_new(callers, site_json_place(&site->callers[i]));
	(void)json_object_set_new(row, "user",
				  site->user_rank ? site_json_place(&site->user) : json_null());
	(void)json_object_set_new(row, "via",
				  site->has_via ? site_json_place(&site->via) : json_null());
	(void)json_object_set_new(row, "callers",
				  callers); /* without memory, members are missing */
	return row;
}
