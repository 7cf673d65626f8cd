/* SPDX-License-Identifier: Apache-2.0 */

/* Stack frames as lines of text. */

#include "tui/stack-lines.h"

#include <stdio.h>

#include "model/sites/site.h"
#include "model/sites/stack.h"

size_t stack_lines_count(const struct stack *stack)
{
	char function[STACK_SHOWN];
	struct frame frame;
	size_t count = 0;

	for (size_t i = 0; stack && i < stack->count; count += 1 + frame.is_cut)
		i = stack_shown(stack, i, &frame, function);
	return count;
}

void stack_lines_text(const struct stack *stack, size_t index, char *ret_text, size_t size)
{
	char function[STACK_SHOWN], named[STACK_LINE];
	struct frame frame;
	size_t line = 0;

	ret_text[0] = '\0';
	for (size_t i = 0; i < stack->count && line <= index; line += 1 + frame.is_cut) {
		i = stack_shown(stack, i, &frame, function);
		if (frame.is_approximate) {
			(void)snprintf(named, sizeof(named), "%s (approximate)",
				       frame.function ? frame.function : "?");
			frame.function = named;
		}
		if (line == index)
			(void)site_frame_text(&frame, ret_text, size);
		/* Where its callers would be. */
		else if (frame.is_cut && line + 1 == index)
			snprintf(ret_text, size, FRAME_CUT_LINE);
	}
}
