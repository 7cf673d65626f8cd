/* SPDX-License-Identifier: Apache-2.0 */

/* Fifteen addresses in a row say no more than where they are. */

#include <stdio.h>
#include <string.h>

#include "model/sites/frames.h"

/* The module of a frame that has no name; NULL = it has one. */
static const char *frames_fold_module(const struct frame *frame)
{
	return !frame->file && (!frame->function || frames_is_address(frame)) ? frame->module
									      : NULL;
}

static bool frames_fold_is_same(const struct frames_fold *fold, const struct frame *frame)
{
	const char *last = frames_fold_module(&fold->frame), *next = frames_fold_module(frame);

	return fold->count > 0 && !fold->frame.is_cut && last && next && strcmp(last, next) == 0;
}

bool frames_fold_add(struct frames_fold *fold, const struct frame *frame, struct frame *ret_frame)
{
	bool has_frame = fold->count > 0;

	if (frame && frames_fold_is_same(fold, frame)) {
		fold->count++;
		fold->frame.is_cut = frame->is_cut;
		return false;
	}
	if (has_frame) {
		*ret_frame = fold->frame;
		if (fold->count > 1) {
			(void)snprintf(fold->text, sizeof(fold->text), "%s (%u frames)",
				       fold->frame.module, fold->count);
			*ret_frame = (struct frame){.function = fold->text,
						    .is_cut = fold->frame.is_cut};
		}
	}
	fold->count = frame ? 1 : 0;
	if (frame)
		fold->frame = *frame;
	return has_frame;
}

/* The length of "module" in a part "module+0x12"; 0 = it is something else. */
static size_t frames_fold_length(const char *part, const char *end)
{
	static const char digits[] = "0123456789abcdef";
	const char *plus = strstr(part, "+0x");

	if (!plus || plus >= end || plus + 3 + strspn(plus + 3, digits) != end)
		return 0;
	return (size_t)(plus - part);
}

void frames_fold_plain(char *plain)
{
	static const size_t arrow = sizeof(FRAMES_ARROW) - 1;
	char *to = plain, *part = plain;

	while (*part) {
		const char *found = strstr(part, FRAMES_ARROW);
		char *end = found ? part + (found - part) : part + strlen(part), *next = end;
		size_t length = frames_fold_length(part, end);
		unsigned int count = 1;
		char text[FRAMES_FOLD_TEXT];

		while (length && strncmp(next, FRAMES_ARROW, arrow) == 0) {
			size_t last;

			found = strstr(next + arrow, FRAMES_ARROW);
			last = frames_fold_length(next + arrow,
						  found ? found : next + strlen(next));
			if (last != length || strncmp(next + arrow, part, length) != 0)
				break;
			next = found ? next + (found - next) : next + strlen(next);
			count++;
		}
		(void)snprintf(text, sizeof(text), "%.*s (%u frames)", (int)length, part, count);
		/* It must not become longer than what it stands for. */
		if (count > 1 && strlen(text) <= (size_t)(next - part)) {
			memcpy(to, text, strlen(text));
			to += strlen(text);
		} else {
			memmove(to, part, (size_t)(next - part));
			to += next - part;
		}
		part = next;
		if (*part) {
			memmove(to, FRAMES_ARROW, arrow);
			to += arrow;
			part += arrow;
		}
	}
	*to = '\0';
}
