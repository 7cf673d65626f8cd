/* SPDX-License-Identifier: Apache-2.0 */

/* Matching frames with patterns. */

#include "model/sites/frame-patterns.h"

#include <string.h>

#include "base/bits.h"
#include "base/pattern.h"
#include "model/sites/stack.h"

struct frame_text {
	const char *bytes;
	size_t length;
};

static struct frame_text frame_text(const char *bytes)
{
	return (struct frame_text){bytes, bytes ? strlen(bytes) : 0};
}

static bool frame_patterns_glob(struct frame_text pattern, struct frame_text text)
{
	return pattern_matches(pattern.bytes, pattern.length, text.bytes, text.length);
}

/* Whether the "(" or "{" at @at belongs to the name: "(anonymous namespace)", "operator()". */
static bool frame_patterns_is_inside(const char *function, const char *at)
{
	static const char anonymous[] = "(anonymous namespace)", call[] = "operator";

	return strncmp(at, anonymous, sizeof(anonymous) - 1) == 0 ||
	       ((size_t)(at - function) >= sizeof(call) - 1 &&
		memcmp(at - (sizeof(call) - 1), call, sizeof(call) - 1) == 0);
}

/* How long "operator<<" or "operator->" is, whose sign opens and closes nothing; 0 = it is none. */
static size_t frame_patterns_operator(const char *function, const char *at)
{
	static const char word[] = "operator";
	size_t length = sizeof(word) - 1;

	if (strncmp(at, word, length) != 0 || !strchr("<>-", at[length]) || !at[length] ||
	    (at > function && at[-1] != ':' && at[-1] != ' '))
		return 0;
	return length + strspn(at + length, "<>-=");
}

const char *frame_patterns_name(const char *function, size_t *ret_length)
{
	static const char word[] = "operator ";
	const char *start = function, *p = function;
	unsigned int depth = 0;

	for (; *p; p++) {
		bool opens = *p == '<' || *p == '(' || *p == '{' || *p == '[';
		bool closes = *p == '>' || *p == ')' || *p == '}' || *p == ']';

		if (depth == 0 && frame_patterns_operator(function, p)) {
			p += frame_patterns_operator(function, p);
			p += strcspn(p, "(");
			break;
		}
		if (depth == 0 && strncmp(p, word, sizeof(word) - 1) == 0) {
			p += strcspn(p, "(");
			break;
		}
		if (depth == 0 && *p == '(' && !frame_patterns_is_inside(function, p))
			break;
		if (depth == 0 && *p == ' ')
			start = p + 1;
		if (opens)
			depth++;
		else if (closes && depth > 0)
			depth--;
	}
	*ret_length = (size_t)(p - start);
	return start;
}

static struct frame_text frame_patterns_base(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return frame_text(slash ? slash + 1 : path);
}

static bool frame_patterns_one(struct frame_text pattern, const struct frame *frame)
{
	struct frame_text name = {.bytes = NULL};

	if (frame->function)
		name.bytes = frame_patterns_name(frame->function, &name.length);
	if (name.bytes && pattern.length > 2 &&
	    memcmp(pattern.bytes + pattern.length - 2, "::", 2) == 0 &&
	    name.length >= pattern.length &&
	    frame_patterns_glob(pattern, (struct frame_text){name.bytes, pattern.length}))
		return true;
	return (name.bytes && (frame_patterns_glob(pattern, name) ||
			       frame_patterns_glob(pattern, frame_text(frame->function)))) ||
	       (frame->file && (frame_patterns_glob(pattern, frame_text(frame->file)) ||
				frame_patterns_glob(pattern, frame_patterns_base(frame->file)))) ||
	       (frame->module &&
		(frame_patterns_glob(pattern, frame_text(frame->module)) ||
		 frame_patterns_glob(pattern, frame_patterns_base(frame->module))));
}

/* The length of the first pattern of a list. */
static size_t frame_patterns_length(const char *list)
{
	size_t i = 0;

	while (list[i] && list[i] != ',') {
		if (list[i] == ':' && list[i + 1] != ':')
			break;
		i += list[i] == ':' ? 2 : 1;
	}
	return i;
}

bool frame_patterns_match(const char *patterns, const struct frame *frame)
{
	while (patterns && *patterns) {
		struct frame_text pattern = {patterns, frame_patterns_length(patterns)};

		patterns += pattern.length + (patterns[pattern.length] != '\0');
		while (pattern.length && *pattern.bytes == ' ') {
			pattern.bytes++;
			pattern.length--;
		}
		while (pattern.length && pattern.bytes[pattern.length - 1] == ' ')
			pattern.length--;
		if (pattern.length && frame_patterns_one(pattern, frame))
			return true;
	}
	return false;
}
