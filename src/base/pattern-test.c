/* SPDX-License-Identifier: Apache-2.0 */

/* What patterns stand for, and that hostile ones end soon. */

#include "base/pattern.h"

#include <string.h>

#include "base/testing/unit.h"

static bool matches(const char *pattern, const char *text)
{
	return pattern_matches(pattern, strlen(pattern), text, strlen(text));
}

UNIT(a_pattern_stands_for_the_whole_text)
{
	assert(matches("kv", "kv") && !matches("kv", "kv.0") && !matches("kv", "my kv"));
	assert(matches("", "") && !matches("", "kv") && !matches("kv", ""));
}

UNIT(stars_and_question_marks_stand_for_text)
{
	assert(matches("kv.*", "kv.0") && matches("*kv*", "my kv.0") && matches("*", ""));
	assert(matches("kv.?", "kv.0") && !matches("kv.?", "kv.") && !matches("kv.?", "kv.10"));
	assert(matches("*a*b", "xaxab") && !matches("*a*b", "xaxac"));
}

UNIT(brackets_stand_for_themselves)
{
	assert(matches("layer[3]", "layer[3]") && !matches("layer[3]", "layer3"));
}

UNIT(many_stars_end_soon)
{
	char pattern[201], text[2001];

	memset(pattern, '*', 200);
	for (size_t i = 1; i < 200; i += 2)
		pattern[i] = 'a';
	pattern[200] = '\0';
	memset(text, 'a', 2000);
	text[2000] = '\0';
	assert(matches(pattern, text));
	text[1999] = 'b';
	assert(!matches(pattern, text));
}
