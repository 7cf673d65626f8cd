/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A test's name has slashes itself: those of its file come before "::", and those of its parameters
 * are in brackets. The first one after all of that ends the name. Fixtures of several tests have the
 * number 0 and are no test.
 */

#include "model/test-phase.h"

#include <string.h>

#include "base/hash.h"

#define TEST_PHASE_RUN "pytest-"
#define TEST_PHASE_WORD 8 /* hexadecimal digits */

/* Skips characters of a set. NULL: there is none, or not @count of them (0 = any number). */
static const char *test_phase_skip(const char *text, const char *set, size_t count)
{
	size_t length = strspn(text, set);

	return length > 0 && (count == 0 || length == count) ? text + length : NULL;
}

/* Skips "pytest-PID-WORD/NUMBER " at the beginning of @text. NULL: it is not there. */
static const char *test_phase_begin(const char *text)
{
	static const char digits[] = "0123456789";

	if (strncmp(text, TEST_PHASE_RUN, strlen(TEST_PHASE_RUN)) != 0)
		return NULL;
	text = test_phase_skip(text + strlen(TEST_PHASE_RUN), digits, 0);
	if (!text || *text != '-')
		return NULL;
	text = test_phase_skip(text + 1, "0123456789abcdef", TEST_PHASE_WORD);
	if (!text || text[0] != '/' || text[1] == '0')
		return NULL;
	text = test_phase_skip(text + 1, digits, 0);
	return text && text[0] == ' ' && text[1] ? text + 1 : NULL;
}

static size_t test_phase_length(const char *name)
{
	bool has_item = false;
	size_t depth = 0;

	for (const char *p = name; *p; p++) {
		if (*p == '[')
			depth++;
		else if (*p == ']' && depth > 0)
			depth--;
		else if (p[0] == ':' && p[1] == ':')
			has_item = true;
		else if (*p == '/' && has_item && depth == 0)
			return (size_t)(p - name);
	}
	return strlen(name);
}

bool test_phase_parse(const char *phase, struct test_phase *ret_test)
{
	const char *run = phase, *name = NULL;

	while (run && !(name = test_phase_begin(run))) {
		run = strchr(run, '/');
		run = run ? run + 1 : NULL;
	}
	if (!name)
		return false;
	*ret_test = (struct test_phase){
		.name = name,
		.length = test_phase_length(name),
		.key = hash_bytes(run, (size_t)(name - run)),
	};
	ret_test->inner = name + ret_test->length;
	ret_test->inner += *ret_test->inner == '/';
	return true;
}
