/* SPDX-License-Identifier: Apache-2.0 */

/* Stacks for people. Fifteen addresses in a row say no more than where they are. */

#include <stdio.h>
#include <string.h>

#include "base/append.h"
#include "model/sites/stack.h"

/* The module of a frame that has no name; NULL = it has one. */
static const char *frame_bare_module(const struct frame *frame)
{
	return !frame->file && (!frame->function || frame_is_address(frame)) ? frame->module : NULL;
}

size_t stack_shown(const struct stack *stack, size_t at, struct frame *ret_frame,
		   char ret_function[STACK_SHOWN])
{
	const char *module = frame_bare_module(&stack->frames[at]);
	size_t first = at++;

	while (at < stack->count && !stack->frames[at - 1].is_cut && module &&
	       frame_bare_module(&stack->frames[at]) == module)
		at++;
	*ret_frame = stack->frames[first];
	if (at - first > 1) {
		(void)snprintf(ret_function, STACK_SHOWN, "%s (%zu frames)", module, at - first);
		*ret_frame = (struct frame){.function = ret_function,
					    .is_cut = stack->frames[at - 1].is_cut};
	}
	return at;
}

/*
 * How a program or a thread reaches its first own function is the same for all of them. @next: the
 * frame it called; in a program without names only that identifies it.
 */
static bool stack_is_beginning(const struct frame *frame, const struct frame *next)
{
	if (frame->module && strcmp(frame->module, "libc.so.6") == 0)
		return true;
	if (next->function && strstr(next->function, "__libc_start"))
		return true;
	return !frame->file && frame->module && frame->function &&
	       strcmp(frame->function, "_start") == 0;
}

const char *stack_plain(const struct stack *stack, bool folds, char *ret_text, size_t size)
{
	struct append text = {ret_text, size, 0};
	size_t i = stack ? stack->count : 0;

	ret_text[0] = '\0';
	while (i > 1 && stack_is_beginning(&stack->frames[i - 1], &stack->frames[i - 2]))
		i--;
	while (i > 0) {
		struct frame frame = stack->frames[--i];
		const char *module = folds && !frame.is_cut ? frame_bare_module(&frame) : NULL;
		unsigned int count = 1;

		for (; module && i > 0 && frame_bare_module(&stack->frames[i - 1]) == module &&
		       !stack->frames[i - 1].is_cut;
		     i--)
			count++;
		frame.build_id = NULL;
		frame.is_skipped = false;
		if (frame.file || frame_is_address(&frame))
			frame.module = NULL;
		if (count > 1)
			append(&text, "%s (%u frames)", module, count);
		else
			text.length += bits_min(
				frame_line(&frame, ret_text + text.length, size - text.length),
				size - text.length - 1);
		append(&text, "%s", i > 0 ? STACK_ARROW : "");
	}
	return ret_text;
}
