/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers for texts, and stacks and frames by number. */

#include "cli/report/report-texts.h"

#include <stdlib.h>
#include <string.h>

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/emit.h"
#include "cli/common/must.h"
#include "model/sites/site.h"
#include "model/sites/stack.h"

/* A recording has a few thousand different stacks at most; beyond this, pages would not be read. */
#define REPORT_STACKS_MAX 4096u

void report_texts_deinit(struct report_texts *texts)
{
	pool_deinit(&texts->pool);
	free(texts->list);
	map_deinit(&texts->numbers);
	*texts = REPORT_TEXTS_NULL;
}

/* @own: of the pool; NULL = none. */
static uint32_t report_texts_keep(struct report_texts *texts, const void *own)
{
	uint32_t number;

	if (!own)
		return REPORT_TEXTS_NONE;
	/* Equal entries of a pool have equal addresses. */
	number = must_number(&texts->numbers, (uintptr_t)own, 0);
	must_grow(texts->list, &texts->capacity, number);
	texts->list[number - 1] = own;
	return number - 1;
}

uint32_t report_texts_number(struct report_texts *texts, const char *text)
{
	return text ? report_texts_keep(texts,
					must_have(pool_long_text(&texts->pool, text, strlen(text))))
		    : REPORT_TEXTS_NONE;
}

void report_stacks_deinit(struct report_stacks *stacks)
{
	report_texts_deinit(&stacks->stacks);
	report_texts_deinit(&stacks->frames);
}

void report_stacks_put(struct report_stacks *stacks, struct emit *json, const struct stack *stack)
{
	struct report_texts *texts = &stacks->stacks;
	uint32_t number = report_texts_keep(texts, must_stack(&texts->pool, stack));

	if (number < REPORT_STACKS_MAX)
		emit_u64(json, "stack", number);
	else
		emit_null(json, "stack");
}

/* Frames become JSON in a stream, and then numbers. */
struct report_frames {
	struct report_stacks *stacks;
	FILE *scratch; /* into *text */
	char *text;
};

static uint32_t report_frames_number(struct report_frames *self, const struct frame *frame)
{
	struct emit json = EMIT_INIT(self->scratch);

	rewind(self->scratch);
	fields_put_row(&json, call_stack_frame_fields, frame);
	if (fputc('\0', self->scratch) == EOF || fflush(self->scratch) != 0)
		must_end();
	return report_texts_number(&self->stacks->frames, self->text);
}

/* A frame of a stack; @frame: NULL = none. */
static void report_frames_put(struct report_frames *self, struct emit *json, const char *key,
			      const struct frame *frame)
{
	uint32_t number = frame ? report_frames_number(self, frame) : REPORT_TEXTS_NONE;

	if (number != REPORT_TEXTS_NONE)
		emit_u64(json, key, number);
	else if (key)
		emit_null(json, key);
}

static void report_stacks_emit_one(struct report_frames *self, struct emit *json,
				   const struct stack *stack)
{
	struct site site;

	(void)site_choose(stack, &site); /* without one it is null */
	emit_open_object(json, NULL);
	emit_open_array(json, "frames");
	for (size_t i = 0; i < stack->count; i++)
		report_frames_put(self, json, NULL, &stack->frames[i]);
	emit_close_array(json);
	report_frames_put(self, json, "site", site.rank ? &site.frame : NULL);
	report_frames_put(self, json, "user", site.user_rank ? &site.user : NULL);
	report_frames_put(self, json, "via", site.has_via ? &site.via : NULL);
	emit_open_array(json, "callers");
	for (unsigned int i = 0; i < site.caller_count; i++)
		report_frames_put(self, json, NULL, &site.callers[i]);
	emit_close_array(json);
	emit_close_object(json);
}

void report_stacks_emit(struct report_stacks *stacks, struct emit *json)
{
	struct report_frames self = {.stacks = stacks};
	size_t size;

	self.scratch = must_have(open_memstream(&self.text, &size));
	emit_open_array(json, "stacks");
	for (size_t i = 0; i < stacks->stacks.numbers.count && i < REPORT_STACKS_MAX; i++)
		report_stacks_emit_one(&self, json, stacks->stacks.list[i]);
	emit_close_array(json);
	emit_open_array(json, "frames");
	for (size_t i = 0; i < stacks->frames.numbers.count; i++)
		emit_raw(json, NULL, stacks->frames.list[i]);
	emit_close_array(json);
	(void)fclose(self.scratch); /* it is in memory */
	free(self.text);
}
