/* SPDX-License-Identifier: Apache-2.0 */

/* What is in use after each event is written down, not computed: it is what readers must find. */

#include "cli/export/testing/testing-story.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "book/format/layout.h"
#include "cli/export/format/export-form.h"
#include "model/snapshot.h"
#include "model/testing/testing-stack.h"
#include "model/types.h"

#define MS UINT64_C(1000000)

static const char story_load[] = "/app/run.py:3:<module> -> /app/model.py:12:load";
static const char story_step[] = "/app/run.py:7:<module> -> /app/model.py:20:step";
static const char story_native[] = "main @ app -> fill @ libmodel.so";
static const char story_weights[] = "weights", story_cache[] = "kv.0", story_other[] = "kv.7";
static const char story_phase[] = "step", story_filling[] = "fill";

static const struct export_owner story_owners[] = {{100, "python3"}, {200, "worker"}};

static const struct export_event story_events[] = {
	{.op = BOOK_OP_ALLOC,
	 .type = TYPES_DRAM,
	 .address = 0x1000,
	 .size = 1000,
	 .bytes = 1000,
	 .refs = 1,
	 .name = story_weights,
	 .phase = "load",
	 .used = 1000},
	{.time_ns = 1 * MS,
	 .number = 1,
	 .op = BOOK_OP_ALLOC,
	 .type = TYPES_DRAM,
	 .refs = 1,
	 .address = 0x2000,
	 .size = 500,
	 .bytes = 500,
	 .name = story_cache,
	 .phase = story_phase,
	 .thread = 1,
	 .used = 1500},
	{.time_ns = 2 * MS,
	 .number = 2,
	 .op = BOOK_OP_ALLOC,
	 .type = TYPES_L1,
	 .refs = 1,
	 .address = 0x1000,
	 .size = 64,
	 .bytes = 64,
	 .phase = story_filling,
	 .used = 64},
	{.kind = EXPORT_MARK, .time_ns = 2 * MS + 500, .name = "step, \"1\""},
	{.time_ns = 3 * MS,
	 .number = 3,
	 .op = BOOK_OP_FREE,
	 .type = TYPES_DRAM,
	 .address = 0x2000,
	 .size = 500,
	 .bytes = 500,
	 .name = story_cache,
	 .phase = story_phase,
	 .used = 1000},
	{.time_ns = 4 * MS,
	 .process = 1,
	 .device = 1,
	 .number = 1,
	 .op = BOOK_OP_ALLOC,
	 .type = TYPES_DRAM,
	 .address = 0x1000,
	 .size = 4096,
	 .bytes = 4096,
	 .refs = 1,
	 .name = story_other,
	 .used = 4096},
	{.time_ns = 5 * MS,
	 .number = 4,
	 .op = BOOK_OP_FAILED,
	 .type = TYPES_DRAM,
	 .size = UINT64_C(1) << 40,
	 .used = 1000},
	{.kind = EXPORT_GAP, .time_ns = 6 * MS, .number = 22, .missed = 17},
	{.time_ns = 7 * MS,
	 .number = 23,
	 .op = BOOK_OP_ALLOC,
	 .type = TYPES_DRAM,
	 .address = 0x1100,
	 .size = 10,
	 .refs = 1,
	 .used = 1000},
};

/* Of the events, likewise. */
static const struct {
	const char *stack, *birth;
} story_stacks[ARRAY_SIZE(story_events)] = {
	{story_load, story_load},     {story_step, story_step},
	{story_native, story_native}, {NULL, NULL},
	{story_native, story_step},   {NULL, NULL},
	{story_step, NULL},           {NULL, NULL},
	{story_load, story_load},
};

static int story_add(struct snapshot *snapshot, struct snapshot_buffer buffer)
{
	if (buffer.name)
		buffer.name = snapshot_text(snapshot, buffer.name, strlen(buffer.name));
	return snapshot_add_buffer(snapshot, &buffer);
}

static int story_fill(struct snapshot *snapshot)
{
	const struct snapshot_buffer buffers[] = {
		{.type = TYPES_DRAM,
		 .address = 0x1000,
		 .size = 1000,
		 .name = story_weights,
		 .stack = testing_stack(story_load)},
		{.type = TYPES_L1,
		 .address = 0x1000,
		 .size = 64,
		 .stack = testing_stack(story_native)},
		{.type = TYPES_DRAM,
		 .address = 0x1100,
		 .size = 10,
		 .stack = testing_stack(story_load),
		 .flags = SNAPSHOT_FLAG_ALIAS},
		{.process = 1,
		 .device = 1,
		 .type = TYPES_DRAM,
		 .address = 0x1000,
		 .size = 4096,
		 .name = story_other},
	};
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < ARRAY_SIZE(story_owners); i++) {
		const struct snapshot_process process = {.id.pid = story_owners[i].pid,
							 .id.start_ticks = i + 1,
							 .comm = story_owners[i].comm,
							 .user = "user",
							 .source = "book",
							 .alive = true,
							 .exact = true};
		uint32_t index;

		r = snapshot_add_process(snapshot, &process, &index);
		if (r == 0 && !snapshot_part(snapshot, index, i))
			r = -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(buffers); i++)
		r = story_add(snapshot, buffers[i]);
	return r == 0 ? snapshot_finish(snapshot) : r;
}

static void story_tell(const struct export_form *form, void *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(story_events); i++) {
		struct export_event event = story_events[i];

		event.time_ns += STORY_START;
		event.stack = testing_stack(story_stacks[i].stack);
		event.birth = testing_stack(story_stacks[i].birth);
		form->event(state, &event);
	}
}

static void story_run(const struct export_form *form, enum story_part part,
		      struct export_target *target)
{
	void *state = form->begin(target);

	if (part == STORY_WHOLE && form->event)
		story_tell(form, state);
	form->finish(state);
	if (form->free)
		form->free(state);
}

int story_write(const struct export_form *form, enum story_part part, FILE *out)
{
	struct snapshot *snapshot = snapshot_new(STORY_START + 8 * MS);
	struct export_count counts[2];
	struct export_target target = {.out = out, .snapshot = snapshot, .rows_max = 1000};
	int r = snapshot ? story_fill(snapshot) : -ENOMEM;

	if (r == 0 && part == STORY_WHOLE) {
		counts[0] = (struct export_count){.type = TYPES_DRAM,
						  .stack = snapshot->buffers[0].stack,
						  .allocs = 2,
						  .bytes = 1000};
		counts[1] = (struct export_count){.type = TYPES_DRAM,
						  .stack = testing_stack(story_step),
						  .allocs = 1,
						  .bytes = 500};
		target.command = "python3 run.py";
		target.start_ns = STORY_START;
		target.owners = story_owners;
		target.owner_count = ARRAY_SIZE(story_owners);
		target.counts = counts;
		target.count_count = ARRAY_SIZE(counts);
	}
	if (r == 0)
		story_run(form, part, &target);
	snapshot_free(snapshot);
	return r;
}
