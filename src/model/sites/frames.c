/* SPDX-License-Identifier: Apache-2.0 */

/* Parsing the frames of a stack. */

#include "model/sites/frames.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define FRAMES_ARROW_LENGTH (sizeof(FRAMES_ARROW) - 1)
#define FRAMES_AT_LENGTH (sizeof(FRAMES_AT) - 1)
#define FRAMES_DIGITS_MAX 9u /* of a line number */

void frames_init(struct frames *frames, const char *stack)
{
	char *copy = stack && *stack ? strdup(stack) : NULL;

	*frames = (struct frames){.copy = copy, .end = copy ? copy + strlen(copy) : NULL};
}

void frames_deinit(struct frames *frames)
{
	free(frames->copy);
	*frames = (struct frames){.copy = NULL};
}

/* Finds ":line:" in @part; NULL = not there. */
static char *frames_find_line(char *part, char **ret_function, uint32_t *ret_line)
{
	for (char *colon = strchr(part, ':'); colon; colon = strchr(colon + 1, ':')) {
		size_t digits = strspn(colon + 1, "0123456789");

		if (digits == 0 || digits > FRAMES_DIGITS_MAX || colon[1 + digits] != ':')
			continue;
		*ret_line = (uint32_t)strtoul(colon + 1, NULL, 10);
		*ret_function = colon + 2 + digits;
		return colon;
	}
	return NULL;
}

/* The last " @ " of a part; NULL = none. */
static char *frames_find_at(char *part)
{
	char *at = strstr(part, FRAMES_AT), *last = NULL;

	for (; at; at = strstr(at + 1, FRAMES_AT))
		last = at;
	return last;
}

static bool frames_is_python(const char *file)
{
	const char *dot = strrchr(file, '.');

	/* Code typed in, generated or of the interpreter: "<stdin>", "<frozen runpy>". */
	if (file[0] == '<')
		return true;
	return dot && (strcmp(dot, ".py") == 0 || strcmp(dot, ".pyx") == 0);
}

static bool frames_begins_module(const char *function, const char *module)
{
	size_t length = strlen(module);

	return strncmp(function, module, length) == 0 && strncmp(function + length, "+0x", 3) == 0;
}

/* The build id behind a function; NULL = none. Names may contain anything, but these have none. */
static char *frames_cut_build(char *function)
{
	char *mark = strstr(function, FRAMES_BUILD);
	char *id = mark ? mark + sizeof(FRAMES_BUILD) - 1 : NULL;
	size_t length = id ? strspn(id, "0123456789abcdef") : 0;

	if (length == 0 || id[length] != ')')
		return NULL;
	*mark = '\0';
	id[length] = '\0';
	return id;
}

/* Whether a function has this mark behind it, which is taken off. */
static bool frames_take_mark(char *function, const char *mark)
{
	char *found = strstr(function, mark);

	if (found)
		*found = '\0';
	return found;
}

static void frames_parse(char *part, struct frame *ret_frame)
{
	struct frame frame = {.function = part};
	char *function = part;
	char *at = frames_find_at(part);
	char *end;

	if (at) {
		*at = '\0';
		frame.module = at + FRAMES_AT_LENGTH;
	}
	end = frames_find_line(part, &function, &frame.line);
	if (end) {
		*end = '\0';
		frame.file = part;
		frame.is_python = frames_is_python(part);
	}
	frame.is_cut = frames_take_mark(function, FRAMES_CUT);
	frame.is_skipped = frames_take_mark(function, FRAMES_SKIPPED);
	if (!frame.file && frame.module && frames_begins_module(function, frame.module))
		frame.build_id = frames_cut_build(function);
	frame.is_approximate = frames_take_mark(function, FRAMES_APPROXIMATE);
	frame.function = strcmp(function, "?") == 0 ? NULL : function;
	*ret_frame = frame;
}

bool frames_next(struct frames *frames, struct frame *ret_frame)
{
	char *part = frames->end;

	if (!part)
		return false;
	while (part > frames->copy &&
	       ((size_t)(part - frames->copy) < FRAMES_ARROW_LENGTH ||
		memcmp(part - FRAMES_ARROW_LENGTH, FRAMES_ARROW, FRAMES_ARROW_LENGTH) != 0))
		part--;
	frames->end = NULL;
	if (part > frames->copy) {
		frames->end = part - FRAMES_ARROW_LENGTH;
		*frames->end = '\0'; /* the end of the next outer frame */
	}
	frames_parse(part, ret_frame);
	return true;
}

bool frames_is_address(const struct frame *frame)
{
	return !frame->file && frame->function && frame->module &&
	       frames_begins_module(frame->function, frame->module);
}

/* Whether namespace or class @name contains it. A template's return type comes first. */
static bool frames_is_member(const char *function, const char *name)
{
	size_t end = strcspn(function, "(");
	const char *found = strstr(function, name);

	return found && (size_t)(found - function) <= end &&
	       (found == function || found[-1] == ' ');
}

bool frames_is_reporting(const char *function, const char *module)
{
	static const char shim[] = "libttmem-metal";

	if (module && strncmp(module, shim, sizeof(shim) - 1) == 0 && strstr(module, ".so"))
		return true;
	return function && (frames_is_member(function, "ttmem_metal::") ||
			    frames_is_member(function, "tt::tt_metal::GraphTracker::"));
}

/* Takes a mark that ends with ")" out of a part. */
static void frames_cut_mark(char *part, const char *mark)
{
	char *from = strstr(part, mark), *end = from ? strchr(from, ')') : NULL;

	if (end)
		memmove(from, end + 1, strlen(end + 1) + 1);
}

/* How much of a part users need: all of it, or what precedes its module. */
static size_t frames_plain_length(char *part)
{
	char *at, *function;
	uint32_t line;

	frames_cut_mark(part, FRAMES_SKIPPED);
	frames_cut_mark(part, FRAMES_BUILD);
	at = frames_find_at(part);
	if (at && (frames_find_line(part, &function, &line) ||
		   frames_begins_module(part, at + FRAMES_AT_LENGTH)))
		return (size_t)(at - part);
	return strlen(part);
}

static bool frames_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/*
 * How a program or a thread reaches its first own function is the same for all of them. @next: the
 * frame it called; in a program without names only that identifies it.
 */
static bool frames_is_beginning(const char *part, const char *next)
{
	const char *begins = strstr(next, "__libc_start"), *end = strstr(next, FRAMES_ARROW);

	return strncmp(part, "_start @ ", strlen("_start @ ")) == 0 ||
	       frames_ends_with(part, " @ libc.so.6") || (begins && (!end || begins < end));
}

const char *frames_plain(const char *stack, char *ret_text, size_t size)
{
	size_t length = bits_min(strlen(stack), size - 1);
	char *to = ret_text, *part = ret_text;

	memmove(ret_text, stack, length);
	ret_text[length] = '\0';
	while (part) {
		char *next = strstr(part, FRAMES_ARROW);

		if (next)
			*next = '\0';
		if (next && to == ret_text &&
		    frames_is_beginning(part, next + FRAMES_ARROW_LENGTH)) {
			part = next + FRAMES_ARROW_LENGTH;
			continue;
		}
		length = frames_plain_length(part);
		memmove(to, part, length);
		to += length;
		if (next) {
			memcpy(to, FRAMES_ARROW, FRAMES_ARROW_LENGTH);
			to += FRAMES_ARROW_LENGTH;
			next += FRAMES_ARROW_LENGTH;
		}
		part = next;
	}
	*to = '\0';
	return ret_text;
}
