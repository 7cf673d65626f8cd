/* SPDX-License-Identifier: Apache-2.0 */

/* Stack frames as lines of text. */

#include "tui/stack-lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/sites/frames.h"

size_t stack_lines_count(const char *stack)
{
	CLEANUP(frames_deinit) struct frames frames;
	struct frames_one frame;
	size_t count = 0;

	frames_init(&frames, stack);
	while (frames_next(&frames, &frame))
		count += 1 + frame.is_cut;
	return count;
}

static void stack_lines_write(const struct frames_one *frame, char *ret_text, size_t size)
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
	CLEANUP(frames_deinit) struct frames frames;
	struct frames_one frame;

	ret_text[0] = '\0';
	frames_init(&frames, stack);
	for (size_t i = 0; frames_next(&frames, &frame); i += 1 + frame.is_cut) {
		if (i == index) {
			stack_lines_write(&frame, ret_text, size);
			return;
		}
		/* Where its callers would be. */
		if (frame.is_cut && i + 1 == index) {
			snprintf(ret_text, size, FRAMES_CUT_LINE);
			return;
		}
	}
}
