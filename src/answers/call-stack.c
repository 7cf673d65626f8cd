/* SPDX-License-Identifier: Apache-2.0 */

/* A stack as a list of frames, innermost first, and the frame that stands for it. */

#include "answers/call-stack.h"

#include <string.h>

#include "base/bits.h"
#include "model/sites/stack.h"

#define ROW struct frame

const struct field call_stack_place_fields[] = {
	FIELD_OR_NULL("function", TEXT, function),
	FIELD_OR_NULL("file", TEXT, file),
	FIELD_OR_NULL("line", SHORT, line),
	FIELD_OR_NULL("module", TEXT, module),
	FIELD_END,
};

const struct field call_stack_frame_fields[] = {
	FIELD_MORE(call_stack_place_fields),
	FIELD("python", BOOL, is_python),
	FIELD_OR_NOTHING("build_id", TEXT, build_id),
	FIELD_OR_NOTHING("approximate", BOOL, is_approximate),
	FIELD_OR_NOTHING("cut", BOOL, is_cut),
	FIELD_OR_NOTHING("skipped", BOOL, is_skipped),
	FIELD_END,
};

#undef ROW
#define ROW struct call_stack_site

const struct field call_stack_site_fields[] = {
	FIELD_MORE_OF(frame, call_stack_place_fields),
	FIELD_POINTED("user", user, call_stack_place_fields, .is_later = true,
		      .says = "the innermost frame of the user's own code; null: not known"),
	FIELD_POINTED("via", via, call_stack_place_fields, .is_later = true,
		      .says = "the function that it called, where that is not the user's"),
	FIELD_ARRAY_AT("callers", ROWS, callers, caller_count, .fields = call_stack_place_fields,
		       .is_later = true,
		       .says = "of the user's own code the frames that called it, nearest first"),
	FIELD_END,
};

#undef ROW
#define ROW struct call_stack

const struct field call_stack_chosen[] = {
	FIELD_POINTED("site", site, call_stack_site_fields,
		      .says = "the frame that stands for the stack; null: there is none"),
	FIELD_END,
};

const struct field call_stack_fields[] = {
	FIELD_ARRAY_AT("stack", ROWS, frames, count, .fields = call_stack_frame_fields,
		       .says = "frames, innermost first; empty if none were recorded"),
	FIELD_MORE(call_stack_chosen),
	FIELD_END,
};

const struct call_stack_site *call_stack_site_of(const struct site *site,
						 struct call_stack_site *room)
{
	if (!site->rank)
		return NULL;
	*room = (struct call_stack_site){
		.frame = site->frame,
		.user = site->user_rank ? &site->user : NULL,
		.via = site->has_via ? &site->via : NULL,
		.callers = site->callers,
		.caller_count = site->caller_count,
	};
	return room;
}

struct call_stack call_stack_of(const struct stack *stack, struct call_stack_room *room)
{
	struct call_stack row = {.site = NULL};

	if (!stack)
		return row;
	row.frames = stack->frames;
	row.count = stack->count;
	if (site_choose(stack, &room->chosen))
		row.site = call_stack_site_of(&room->chosen, &room->site);
	return row;
}

const struct stack *call_stack_keep(const struct call_stack *row, struct pool *pool)
{
	struct stack_maker maker = STACK_MAKER_INIT(pool);

	for (size_t i = 0; i < row->count; i++)
		stack_maker_add(&maker, &row->frames[i]);
	return stack_maker_finish(&maker);
}

struct site call_stack_site(const struct call_stack_site *row)
{
	struct site site = SITE_NULL;

	if (!row)
		return site;
	site.frame = row->frame;
	site.rank = 1;
	site.user_rank = row->user != NULL;
	site.has_via = row->via != NULL;
	if (row->user)
		site.user = *row->user;
	if (row->via)
		site.via = *row->via;
	site.caller_count = (unsigned int)bits_min(row->caller_count, SITE_CALLERS);
	for (unsigned int i = 0; i < site.caller_count; i++)
		site.callers[i] = row->callers[i];
	return site;
}

void call_stack_put(struct emit *json, const struct stack *stack)
{
	struct call_stack_room room;
	const struct call_stack row = call_stack_of(stack, &room);

	fields_put(json, call_stack_fields, &row);
}

void call_stack_put_site(struct emit *json, const struct site *site)
{
	struct call_stack_site room;
	const struct call_stack row = {.site = call_stack_site_of(site, &room)};

	fields_put(json, call_stack_chosen, &row);
}
