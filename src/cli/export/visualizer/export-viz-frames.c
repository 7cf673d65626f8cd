/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words, frames and lists of frames are in the pickle once, and recalled by number. A value has to be put
 * somewhere when it is first made: into the dictionary below, under a key that gets its real value last.
 */

#include "cli/export/visualizer/export-viz.h"

#include <string.h>

#include "cli/common/must.h"
#include "cli/export/format/export-pickle.h"
#include "model/types.h"

#define VIZ_NAME_SIZE 512u

static const char *const viz_words[] = {
	[VIZ_ACTION] = "action",   [VIZ_ADDR] = "addr",
	[VIZ_SIZE] = "size",       [VIZ_STREAM] = "stream",
	[VIZ_TIME] = "time_us",    [VIZ_FRAMES] = "frames",
	[VIZ_NAME] = "name",       [VIZ_FILE] = "filename",
	[VIZ_LINE] = "line",       [VIZ_TRACES] = "device_traces",
	[VIZ_ADDRESS] = "address", [VIZ_REQUESTED] = "requested_size",
	[VIZ_STATE] = "state",
};

void viz_word(const struct viz *viz, enum viz_word word)
{
	export_pickle_recall(viz->out, (uint32_t)word << VIZ_MEMO_SHIFT | VIZ_MEMO_WORD);
}

void viz_set_number(const struct viz *viz, enum viz_word word, uint64_t value)
{
	viz_word(viz, word);
	export_pickle_number(viz->out, value);
	export_pickle_set(viz->out);
}

void viz_set_text(const struct viz *viz, enum viz_word word, const char *text)
{
	viz_word(viz, word);
	export_pickle_text(viz->out, text);
	export_pickle_set(viz->out);
}

void viz_remember_words(struct viz *viz)
{
	export_pickle_text(viz->out, viz_words[VIZ_TRACES]);
	export_pickle_remember(viz->out, VIZ_TRACES << VIZ_MEMO_SHIFT | VIZ_MEMO_WORD);
	export_pickle_list(viz->out);
	for (uint32_t i = 0; i < VIZ_WORDS; i++) {
		if (i == VIZ_TRACES)
			continue;
		export_pickle_text(viz->out, viz_words[i]);
		export_pickle_remember(viz->out, i << VIZ_MEMO_SHIFT | VIZ_MEMO_WORD);
		export_pickle_append(viz->out);
	}
	export_pickle_set(viz->out);
}

static void viz_put_frame(struct viz *viz, uint32_t number)
{
	const struct export_frame *frame = &viz->stacks.frames[number - 1];
	uint32_t memo = number << VIZ_MEMO_SHIFT | VIZ_MEMO_FRAME;

	if (number <= viz->frames) {
		export_pickle_recall(viz->out, memo);
		return;
	}
	export_pickle_dict(viz->out);
	viz_set_text(viz, VIZ_NAME, export_stacks_string(&viz->stacks, frame->function));
	viz_set_text(viz, VIZ_FILE,
		     export_stacks_string(&viz->stacks, frame->file ? frame->file : frame->module));
	viz_set_number(viz, VIZ_LINE, frame->line);
	export_pickle_remember(viz->out, memo);
}

/* Frames that are not remembered yet are numbered in order, but a list begins with the innermost. */
static void viz_remember_frames(struct viz *viz)
{
	while (viz->frames < viz->stacks.frame_index.count) {
		viz_word(viz, VIZ_TRACES);
		viz_put_frame(viz, viz->frames + 1);
		export_pickle_set(viz->out);
		viz->frames++;
	}
}

uint32_t viz_find_frames(struct viz *viz, uint32_t type, const char *name,
			 const struct stack *stack)
{
	size_t before = viz->known_capacity;
	uint32_t node = export_stacks_add(&viz->stacks, 0, stack);
	char text[VIZ_NAME_SIZE];

	snprintf(text, sizeof(text), "%s%s%s", types_name(type), name ? " " : "", name ? name : "");
	node = export_stacks_label(&viz->stacks, node, text);
	must_grow(viz->is_known, &viz->known_capacity, (size_t)node + 1);
	memset(viz->is_known + before, 0, viz->known_capacity - before);
	viz_remember_frames(viz);
	return node;
}

void viz_put_frames(struct viz *viz, uint32_t node)
{
	uint32_t path[EXPORT_STACK_DEPTH + 1], memo = node << VIZ_MEMO_SHIFT | VIZ_MEMO_FRAMES;
	size_t count;

	if (viz->is_known[node]) {
		export_pickle_recall(viz->out, memo);
		return;
	}
	count = export_stacks_path(&viz->stacks, node, path, EXPORT_STACK_DEPTH + 1);
	export_pickle_list(viz->out);
	while (count > 0) {
		viz_put_frame(viz, viz->stacks.nodes[path[--count] - 1].frame);
		export_pickle_append(viz->out);
	}
	export_pickle_remember(viz->out, memo);
	viz->is_known[node] = 1;
}
