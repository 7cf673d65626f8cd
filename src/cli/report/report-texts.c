/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers for texts, and stacks and frames by number. */

#include "cli/report/report-texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/hash.h"
#include "model/json/document.h"
#include "model/sites/frames.h"
#include "model/sites/site.h"

/* A recording has a few thousand different stacks at most; beyond this, pages would not be read. */
#define REPORT_STACKS_MAX 4096u

void report_texts_deinit(struct report_texts *texts)
{
	pool_deinit(&texts->pool);
	free(texts->list);
	free(texts->slots);
	*texts = REPORT_TEXTS_NULL;
}

/* Equal texts of a pool have equal addresses. */
static uint32_t *report_texts_slot(const struct report_texts *texts, const char *text)
{
	size_t mask = texts->slot_count - 1;
	size_t at = hash_u64((uint64_t)(uintptr_t)text) & mask;

	while (texts->slots[at] && texts->list[texts->slots[at] - 1] != text)
		at = (at + 1) & mask;
	return &texts->slots[at];
}

static int report_texts_grow(struct report_texts *texts)
{
	size_t wanted = texts->slot_count ? 2 * texts->slot_count : 64;
	const char **list =
		array_grow(texts->list, &texts->capacity, texts->count + 1, sizeof(*texts->list));
	uint32_t *slots;

	if (!list)
		return -ENOMEM;
	texts->list = list;
	if (2 * (texts->count + 1) <= texts->slot_count)
		return 0;
	slots = calloc(wanted, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(texts->slots);
	texts->slots = slots;
	texts->slot_count = wanted;
	for (size_t i = 0; i < texts->count; i++)
		*report_texts_slot(texts, texts->list[i]) = (uint32_t)i + 1;
	return 0;
}

uint32_t report_texts_number(struct report_texts *texts, const char *text)
{
	const char *own = text ? pool_long_text(&texts->pool, text, strlen(text)) : NULL;
	uint32_t *slot;

	if (!own || report_texts_grow(texts) < 0)
		return REPORT_TEXTS_NONE;
	slot = report_texts_slot(texts, own);
	if (*slot == 0) {
		texts->list[texts->count++] = own;
		*slot = (uint32_t)texts->count;
	}
	return *slot - 1;
}

void report_stacks_deinit(struct report_stacks *stacks)
{
	report_texts_deinit(&stacks->lines);
	report_texts_deinit(&stacks->frames);
}

void report_stacks_put(struct report_stacks *stacks, struct emit *json, const char *stack)
{
	uint32_t number = report_texts_number(&stacks->lines, stack);

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

static uint32_t report_frames_number(struct report_frames *self, const struct frames_one *frame)
{
	struct emit json = EMIT_INIT(self->scratch);

	rewind(self->scratch);
	document_frame(&json, frame);
	if (fputc('\0', self->scratch) == EOF || fflush(self->scratch) != 0)
		return REPORT_TEXTS_NONE;
	return report_texts_number(&self->stacks->frames, self->text);
}

/* A frame of a stack; @frame: NULL = none. */
static void report_frames_put(struct report_frames *self, struct emit *json, const char *key,
			      const struct frames_one *frame)
{
	uint32_t number = frame ? report_frames_number(self, frame) : REPORT_TEXTS_NONE;

	if (number != REPORT_TEXTS_NONE)
		emit_u64(json, key, number);
	else if (key)
		emit_null(json, key);
}

static void report_stacks_emit_one(struct report_frames *self, struct emit *json, const char *line)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct site site = SITE_NULL;
	struct frames_one frame;

	frames_init(&frames, line);
	emit_open_object(json, NULL);
	emit_open_array(json, "frames");
	while (frames_next(&frames, &frame)) {
		report_frames_put(self, json, NULL, &frame);
		site_consider(&site, &frame);
	}
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

int report_stacks_emit(struct report_stacks *stacks, struct emit *json)
{
	struct report_frames self = {.stacks = stacks};
	size_t size;

	self.scratch = open_memstream(&self.text, &size);
	if (!self.scratch)
		return -ENOMEM;
	emit_open_array(json, "stacks");
	for (size_t i = 0; i < stacks->lines.count && i < REPORT_STACKS_MAX; i++)
		report_stacks_emit_one(&self, json, stacks->lines.list[i]);
	emit_close_array(json);
	emit_open_array(json, "frames");
	for (size_t i = 0; i < stacks->frames.count; i++)
		emit_raw(json, NULL, stacks->frames.list[i]);
	emit_close_array(json);
	(void)fclose(self.scratch); /* it is in memory */
	free(self.text);
	return 0;
}
