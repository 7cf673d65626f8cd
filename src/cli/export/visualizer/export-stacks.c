/* SPDX-License-Identifier: Apache-2.0 */

/* Every thing is found by an index of its own, and kept in an array by its number. */

#include "cli/export/visualizer/export-stacks.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/must.h"
#include "model/sites/name-stem.h"
#include "model/sites/stack.h"

#define STACKS_NAME_SIZE 4096u

void export_stacks_deinit(struct export_stacks *stacks)
{
	pool_deinit(&stacks->pool);
	map_deinit(&stacks->text_index);
	map_deinit(&stacks->frame_index);
	map_deinit(&stacks->node_index);
	map_deinit(&stacks->stack_index);
	free(stacks->texts);
	free(stacks->frames);
	free(stacks->nodes);
	free(stacks->stacks);
	*stacks = EXPORT_STACKS_NULL;
}

static bool stacks_is_harmful(const char *text)
{
	size_t left = strlen(text);
	uint32_t character;

	while (left > 0) {
		size_t n = text_decode(text, left, &character);

		if (text_is_harmful(character))
			return true;
		text += n;
		left -= n;
	}
	return false;
}

uint32_t export_stacks_text(struct export_stacks *stacks, const char *text)
{
	CLEANUP_FREE char *escaped = NULL;
	uint32_t before = stacks->text_index.count, number;

	if (stacks_is_harmful(text)) {
		size_t size = TEXT_ESCAPE_SIZE(strlen(text));

		escaped = must_alloc(size, 1);
		text_escape(text, escaped, size);
		text = escaped;
	}
	text = must_have(pool_long_text(&stacks->pool, text, strlen(text)));
	number = must_number(&stacks->text_index, (uintptr_t)text, 0);
	if (number > before) {
		must_grow(stacks->texts, &stacks->text_capacity, number);
		stacks->texts[before] = text;
	}
	return number;
}

const char *export_stacks_string(const struct export_stacks *stacks, uint32_t number)
{
	return number ? stacks->texts[number - 1] : "";
}

static uint32_t stacks_put_frame(struct export_stacks *stacks, const struct export_frame *frame)
{
	uint32_t before = stacks->frame_index.count;
	uint32_t number =
		must_number(&stacks->frame_index, (uint64_t)frame->function << 32 | frame->file,
			    (uint64_t)frame->module << 32 | frame->line);

	if (number > before) {
		must_grow(stacks->frames, &stacks->frame_capacity, number);
		stacks->frames[before] = *frame;
	}
	return number;
}

static uint32_t stacks_put_node(struct export_stacks *stacks, uint32_t parent, uint32_t frame)
{
	uint32_t before = stacks->node_index.count;
	uint32_t number = must_number(&stacks->node_index, (uint64_t)parent << 32 | frame, 0);

	if (number > before) {
		must_grow(stacks->nodes, &stacks->node_capacity, number);
		stacks->nodes[before] = (struct export_node){.parent = parent, .frame = frame};
	}
	return number;
}

/*
 * Python calls code that is in no function "<module>", which others take for a template's arguments and
 * leave out: "module (run.py)".
 */
static const char *stacks_name(const struct frame *frame, char *text, size_t size)
{
	const char *function = frame->function ? frame->function : "?";
	size_t length = strlen(function);
	const char *slash;

	if (!frame->is_python || length < 3 || function[0] != '<' || function[length - 1] != '>')
		return function;
	slash = strrchr(frame->file, '/');
	snprintf(text, size, "%.*s (%s)", (int)(length - 2), function + 1,
		 slash ? slash + 1 : frame->file);
	return text;
}

static uint32_t stacks_find_frame(struct export_stacks *stacks, const struct frame *one)
{
	struct export_frame frame = {.line = one->line};
	char name[STACKS_NAME_SIZE];

	frame.function = export_stacks_text(stacks, stacks_name(one, name, sizeof(name)));
	if (one->file)
		frame.file = export_stacks_text(stacks, one->file);
	if (one->module)
		frame.module = export_stacks_text(stacks, one->module);
	return stacks_put_frame(stacks, &frame);
}

/* A stack begins with the innermost frame, a tree with the outermost. */
static uint32_t stacks_put(struct export_stacks *stacks, uint32_t root, const struct stack *stack)
{
	size_t count = bits_min(stack->count, EXPORT_STACK_DEPTH);
	uint32_t found[EXPORT_STACK_DEPTH];

	for (size_t i = 0; i < count; i++)
		found[i] = stacks_find_frame(stacks, &stack->frames[i]);
	while (count > 0)
		root = stacks_put_node(stacks, root, found[--count]);
	return root;
}

uint32_t export_stacks_add(struct export_stacks *stacks, uint32_t root, const struct stack *stack)
{
	uint32_t before = stacks->stack_index.count, number;

	if (!stack)
		return root;
	number = must_number(&stacks->stack_index, (uintptr_t)stack, root);
	if (number > before) {
		must_grow(stacks->stacks, &stacks->stack_capacity, number);
		stacks->stacks[before] = stacks_put(stacks, root, stack);
	}
	return stacks->stacks[number - 1];
}

uint32_t export_stacks_label(struct export_stacks *stacks, uint32_t parent, const char *text)
{
	const struct export_frame frame = {.function = export_stacks_text(stacks, text)};

	return stacks_put_node(stacks, parent, stacks_put_frame(stacks, &frame));
}

uint32_t export_stacks_site(struct export_stacks *stacks, uint32_t root, const struct stack *stack,
			    const char *name)
{
	char text[STACKS_NAME_SIZE], stem[STACKS_NAME_SIZE / 2];
	uint32_t node = export_stacks_add(stacks, root, stack);

	if (node != root)
		return node;
	snprintf(text, sizeof(text), "[no stack]%s%s", name ? " " : "",
		 name ? name_stem(name, stem, sizeof(stem)) : "");
	return export_stacks_label(stacks, root, text);
}

size_t export_stacks_path(const struct export_stacks *stacks, uint32_t node, uint32_t *ret_nodes,
			  size_t max)
{
	size_t count = 0;

	for (; node && count < max; node = stacks->nodes[node - 1].parent)
		ret_nodes[count++] = node;
	for (size_t i = 0; i < count / 2; i++) {
		uint32_t other = ret_nodes[count - 1 - i];

		ret_nodes[count - 1 - i] = ret_nodes[i];
		ret_nodes[i] = other;
	}
	return count;
}

/* How much of a function's name is not the file: "module (run.py)" has it already. */
static size_t stacks_bare_length(const char *function, const char *place)
{
	size_t length = strlen(function), rest = strlen(place) + sizeof(" ()") - 1;
	const char *end = length > rest ? function + length - rest : NULL;

	if (end && strncmp(end, " (", 2) == 0 && strncmp(end + 2, place, rest - 3) == 0 &&
	    function[length - 1] == ')')
		return length - rest;
	return length;
}

const char *export_stacks_label_of(const struct export_stacks *stacks, uint32_t frame,
				   char ret_text[EXPORT_LABEL_SIZE])
{
	const struct export_frame *one = &stacks->frames[frame - 1];
	const char *function = export_stacks_string(stacks, one->function);
	const char *place = export_stacks_string(stacks, one->file ? one->file : one->module);
	const char *slash = strrchr(place, '/');
	int bare;

	place = slash ? slash + 1 : place;
	bare = (int)stacks_bare_length(function, place);
	if (one->line)
		snprintf(ret_text, EXPORT_LABEL_SIZE, "%.*s (%s:%" PRIu32 ")", bare, function,
			 place, one->line);
	else if (*place && strncmp(function, place, strlen(place)) != 0)
		snprintf(ret_text, EXPORT_LABEL_SIZE, "%.*s (%s)", bare, function, place);
	else
		snprintf(ret_text, EXPORT_LABEL_SIZE, "%s", function);
	return ret_text;
}
