/* SPDX-License-Identifier: Apache-2.0 */

/* The line of a stack, written and read. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "model/sites/stack.h"

#define STACK_AT " @ "
#define STACK_APPROXIMATE " (approximate)" /* this and the next three follow the function */
#define STACK_BUILD " (build "             /* and hex digits and ")" */
#define STACK_SKIPPED " (skipped)"
#define STACK_CUT " (cut)"
#define STACK_DIGITS_MAX 9u /* of a line number */

/* By hand: for a stack of many frames, printf() would take most of the time. */
size_t frame_line(const struct frame *frame, char *ret_text, size_t size)
{
	char line[16] = "";
	const char *parts[] = {
		frame->file,
		line,
		frame->function ? frame->function : "?",
		frame->is_approximate ? STACK_APPROXIMATE : NULL,
		frame->build_id ? STACK_BUILD : NULL,
		frame->build_id,
		frame->build_id ? ")" : NULL,
		frame->is_skipped ? STACK_SKIPPED : NULL,
		frame->is_cut ? STACK_CUT : NULL,
		frame->module ? STACK_AT : NULL,
		frame->module,
	};
	size_t length = 0;

	if (frame->file)
		(void)snprintf(line, sizeof(line), ":%" PRIu32 ":", frame->line);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t more = parts[i] ? strlen(parts[i]) : 0;

		if (more && length < size)
			memcpy(ret_text + length, parts[i], bits_min(more, size - length));
		length += more;
	}
	if (size > 0)
		ret_text[bits_min(length, size - 1)] = '\0';
	return length;
}

/* With the arrow to the frame that it called. */
static size_t stack_frame_line(const struct stack *stack, size_t index, char *ret_text, size_t size)
{
	size_t length = frame_line(&stack->frames[index], ret_text, size);

	if (index > 0 && length < size) {
		memcpy(ret_text + length, STACK_ARROW,
		       bits_min(sizeof(STACK_ARROW), size - length));
		ret_text[size - 1] = '\0';
		length += sizeof(STACK_ARROW) - 1;
	}
	return bits_min(length, size - 1);
}

const char *stack_line(const struct stack *stack, char *ret_text, size_t size)
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (size_t i = stack ? stack->count : 0; i > 0; i--)
		used += stack_frame_line(stack, i - 1, ret_text + used, size - used);
	return ret_text;
}

int stack_compare(const struct stack *a, const struct stack *b)
{
	size_t i = a ? a->count : 0, k = b ? b->count : 0;
	char left[STACK_LINE], right[STACK_LINE];
	int r = 0;

	for (; r == 0 && i > 0 && k > 0; i--, k--) {
		if ((i > 1) == (k > 1) &&
		    memcmp(&a->frames[i - 1], &b->frames[k - 1], sizeof(struct frame)) == 0)
			continue;
		(void)stack_frame_line(a, i - 1, left, sizeof(left));
		(void)stack_frame_line(b, k - 1, right, sizeof(right));
		r = strcmp(left, right);
	}
	return r ? r : (i > k) - (i < k);
}

char *stack_find_line(char *part, char **ret_function, uint32_t *ret_line)
{
	for (char *colon = strchr(part, ':'); colon; colon = strchr(colon + 1, ':')) {
		size_t digits = strspn(colon + 1, "0123456789");

		if (digits == 0 || digits > STACK_DIGITS_MAX || colon[1 + digits] != ':')
			continue;
		*ret_line = (uint32_t)strtoul(colon + 1, NULL, 10);
		*ret_function = colon + 2 + digits;
		return colon;
	}
	return NULL;
}

/* The last " @ " of a part; NULL = none. */
static char *parse_find_at(char *part)
{
	char *at = strstr(part, STACK_AT), *last = NULL;

	for (; at; at = strstr(at + 1, STACK_AT))
		last = at;
	return last;
}

/* The build id behind a function; NULL = none. Names may contain anything, but these have none. */
static char *parse_cut_build(char *function)
{
	char *mark = strstr(function, STACK_BUILD);
	char *id = mark ? mark + sizeof(STACK_BUILD) - 1 : NULL;
	size_t length = id ? strspn(id, "0123456789abcdef") : 0;

	if (length == 0 || id[length] != ')')
		return NULL;
	*mark = '\0';
	id[length] = '\0';
	return id;
}

/* Whether a function has this mark behind it, which is taken off. */
static bool parse_take_mark(char *function, const char *mark)
{
	char *found = strstr(function, mark);

	if (found)
		*found = '\0';
	return found;
}

struct frame frame_parse(char *part)
{
	struct frame frame = {.function = part};
	char *function = part;
	char *at = parse_find_at(part);
	char *end;

	if (at) {
		*at = '\0';
		frame.module = at + strlen(STACK_AT);
	}
	end = stack_find_line(part, &function, &frame.line);
	if (end) {
		*end = '\0';
		frame.file = part;
	}
	frame.is_cut = parse_take_mark(function, STACK_CUT);
	frame.is_skipped = parse_take_mark(function, STACK_SKIPPED);
	frame.function = function;
	if (frame_is_address(&frame))
		frame.build_id = parse_cut_build(function);
	frame.is_approximate = parse_take_mark(function, STACK_APPROXIMATE);
	return frame;
}

const struct stack *stack_parse(struct pool *pool, const char *line)
{
	static const size_t arrow = sizeof(STACK_ARROW) - 1;
	struct stack_maker maker = STACK_MAKER_INIT(pool);
	CLEANUP_FREE char *copy = line && *line ? strdup(line) : NULL;
	char *part = copy ? copy + strlen(copy) : NULL;

	while (part) {
		struct frame frame;
		char *end = NULL;

		while (part > copy && ((size_t)(part - copy) < arrow ||
				       memcmp(part - arrow, STACK_ARROW, arrow) != 0))
			part--;
		if (part > copy) {
			end = part - arrow;
			*end = '\0';
		}
		frame = frame_parse(part);
		stack_maker_add(&maker, &frame);
		part = end;
	}
	return stack_maker_finish(&maker);
}
