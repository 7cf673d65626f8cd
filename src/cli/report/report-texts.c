/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks and frames by number. */

#include "cli/report/report-texts.h"

#include <stdlib.h>

#include "answers/call-stack.h"
#include "base/emit.h"
#include "cli/common/must.h"
#include "model/sites/site.h"

/* A recording has a few thousand different stacks at most; beyond this, pages would not be read. */
#define REPORT_STACKS_MAX 4096u

static void report_list_deinit(struct report_list *list)
{
	free(list->list);
	map_deinit(&list->numbers);
}

void report_stacks_deinit(struct report_stacks *stacks)
{
	report_list_deinit(&stacks->stacks);
	report_list_deinit(&stacks->frames);
	pool_deinit(&stacks->pool);
	free(stacks->numbers);
}

/* @own: of the pool, where equal entries have equal addresses; NULL = none. */
static struct report_index report_list_index(struct report_list *list, const void *own)
{
	uint32_t number;

	if (!own)
		return (struct report_index){0};
	number = must_number(&list->numbers, (uintptr_t)own, 0);
	must_grow(list->list, &list->capacity, number);
	list->list[number - 1] = own;
	return (struct report_index){number - 1, true};
}

struct report_index report_stacks_index(struct report_stacks *stacks, const struct stack *stack)
{
	struct report_index number =
		report_list_index(&stacks->stacks, must_stack(&stacks->pool, stack));

	number.is_known &= number.number < REPORT_STACKS_MAX;
	return number;
}

/* @is_known: else there is none. */
static struct report_index report_frame_index(struct report_stacks *stacks,
					      const struct frame *frame, bool is_known)
{
	struct frame own = *frame;

	if (!is_known)
		return (struct report_index){0};
	if (!frame_keep(&own, &stacks->pool))
		must_end();
	return report_list_index(&stacks->frames,
				 must_have(pool_block(&stacks->pool, &own, sizeof(own))));
}

struct report_frames {
	const uint64_t *frames, *callers;
	size_t count, caller_count;
	struct report_index site, user, via;
};

#define ROW struct report_frames

static const struct field report_frames[] = {
	FIELD_ARRAY_AT("frames", NUMBERS, frames, count),
	FIELD_IF(site.is_known, "site", SHORT, site.number),
	FIELD_IF(user.is_known, "user", SHORT, user.number),
	FIELD_IF(via.is_known, "via", SHORT, via.number),
	FIELD_ARRAY_AT("callers", NUMBERS, callers, caller_count),
	FIELD_END,
};

static void report_put_stack(struct report_stacks *stacks, struct emit *json,
			     const struct stack *stack)
{
	struct report_frames row = {.count = stack->count};
	struct site site;
	uint64_t *numbers;

	(void)site_choose(stack, &site); /* without one it is null */
	must_grow(stacks->numbers, &stacks->capacity, stack->count + SITE_CALLERS);
	row.frames = numbers = stacks->numbers;
	for (size_t i = 0; i < stack->count; i++)
		*numbers++ = report_frame_index(stacks, &stack->frames[i], true).number;
	row.site = report_frame_index(stacks, &site.frame, site.rank);
	row.user = report_frame_index(stacks, &site.user, site.user_rank);
	row.via = report_frame_index(stacks, &site.via, site.has_via);
	row.callers = numbers;
	row.caller_count = site.caller_count;
	for (size_t i = 0; i < site.caller_count; i++)
		*numbers++ = report_frame_index(stacks, &site.callers[i], true).number;
	fields_put_row(json, report_frames, &row);
}

void report_stacks_put(struct report_stacks *stacks, struct emit *json)
{
	emit_open_array(json, "stacks");
	for (size_t i = 0; i < stacks->stacks.numbers.count && i < REPORT_STACKS_MAX; i++)
		report_put_stack(stacks, json, stacks->stacks.list[i]);
	emit_close_array(json);
	emit_open_array(json, "frames");
	for (size_t i = 0; i < stacks->frames.numbers.count; i++)
		fields_put_row(json, call_stack_frame_fields, stacks->frames.list[i]);
	emit_close_array(json);
}
