/* SPDX-License-Identifier: Apache-2.0 */

/* Stack frames as lines of text. */

#include "tui/stack-lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/sites/frames.h"

/* Frames that are shown, the innermost first. */
struct stack_lines {
	struct frames frames;
	struct frames_fold fold;
	bool is_over;
};

#define STACK_LINES_NULL ((struct stack_lines){.is_over = false})

static bool stack_lines_next(struct stack_lines *lines, struct frame *ret_frame)
{
	struct frame frame;

	while (!lines->is_over) {
		lines->is_over = !frames_next(&lines->frames, &frame);
		if (frames_fold_add(&lines->fold, lines->is_over ? NULL : &frame, ret_frame))
			return true;
	}
	return false;
}

size_t stack_lines_count(const char *stack)
{
	struct stack_lines lines = STACK_LINES_NULL;
	struct frame frame;
	size_t count = 0;

	frames_init(&lines.frames, stack);
	while (stack_lines_next(&lines, &frame))
		count += 1 + frame.is_cut;
	frames_deinit(&lines.frames);
	return count;
}

static void stack_lines_write(const struct frame *frame, char *ret_text, size_t size)
{
	const char *file = frame->file;
	const char *function = frame->function ? frame->function : "?";
	const char *sign = frame->is_approximate ? " (approximate)" : "";

	if (file && frame->line)
		snprintf(ret_text, size, "%s%s (%s:%" PRIu32 ")", function, sign, file,
			 frame->line);
	else if (file)
		snprintf(ret_text, size, "%s%s (%s)", function, sign, file);
	else if (frame->module && !frames_is_address(frame))
		snprintf(ret_text, size, "%s%s (%s)", function, sign, frame->module);
	else
		snprintf(ret_text, size, "%s%s", function, sign);
}

void stack_lines_text(const char *stack, size_t index, char *ret_text, size_t size)
{
	struct stack_lines lines = STACK_LINES_NULL;
	struct frame frame;

	ret_text[0] = '\0';
	frames_init(&lines.frames, stack);
	for (size_t i = 0; i <= index && stack_lines_next(&lines, &frame); i += 1 + frame.is_cut) {
		if (i == index)
			stack_lines_write(&frame, ret_text, size);
		/* Where its callers would be. */
		else if (frame.is_cut && i + 1 == index)
			snprintf(ret_text, size, FRAMES_CUT_LINE);
	}
	frames_deinit(&lines.frames);
}
