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

/* The number of a frame; @scratch is a stream into *@text. */
static uint32_t report_stacks_frame(struct report_stacks *stacks, FILE *scratch, char **text,
				    const struct frames_one *frame)
{
	struct emit json = EMIT_INIT(scratch);

	rewind(scratch);
	document_frame(&json, frame);
	if (fputc('\0', scratch) == EOF || fflush(scratch) != 0)
		return REPORT_TEXTS_NONE;
	return report_texts_number(&stacks->frames, *text);
}

static void report_stacks_emit_one(struct report_stacks *stacks, struct emit *json, FILE *scratch,
				   char **text, const char *line)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct site site = SITE_NULL;
	struct frames_one frame;

	frames_init(&frames, line);
	emit_open_object(json, NULL);
	emit_open_array(json, "frames");
	while (frames_next(&frames, &frame)) {
		uint32_t number = report_stacks_frame(stacks, scratch, text, &frame);

		if (number != REPORT_TEXTS_NONE)
			emit_u64(json, NULL, number);
		site_consider(&site, &frame);
	}
	emit_close_array(json);
	if (site.rank)
		emit_u64(json, "site", report_stacks_frame(stacks, scratch, text, &site.frame));
	else
		emit_null(json, "site");
	emit_close_object(json);
}

int report_stacks_emit(struct report_stacks *stacks, struct emit *json)
{
	CLEANUP_FREE char *text = NULL;
	CLEANUP_FCLOSE FILE *scratch = NULL;
	size_t size;

	scratch = open_memstream(&text, &size);
	if (!scratch)
		return -ENOMEM;
	emit_open_array(json, "stacks");
	for (size_t i = 0; i < stacks->lines.count && i < REPORT_STACKS_MAX; i++)
		report_stacks_emit_one(stacks, json, scratch, &text, stacks->lines.list[i]);
	emit_close_array(json);
	emit_open_array(json, "frames");
	for (size_t i = 0; i < stacks->frames.count; i++)
		emit_raw(json, NULL, stacks->frames.list[i]);
	emit_close_array(json);
	return 0;
}
