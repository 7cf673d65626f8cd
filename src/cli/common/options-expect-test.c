/* SPDX-License-Identifier: Apache-2.0 */

/* Placeholders in words. */

#include "cli/common/options-expect.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/types.h"

static bool expects(const char *placeholder, const char *words)
{
	char text[160];

	return strcmp(options_expect(placeholder, text, sizeof(text)), words) == 0;
}

UNIT(placeholders_are_said_in_words)
{
	assert(expects("PID", "a process id") && expects("MS", "milliseconds, 1 or more"));
	assert(expects("SOMETHING", "SOMETHING"));
}

UNIT(choices_are_listed)
{
	assert(expects("size|age", "size or age") && expects("github", "github"));
	assert(expects("name|phase|site", "name, phase or site"));
	assert(expects("TYPE", TYPES_ALL));
}

UNIT(what_does_not_fit_is_cut)
{
	char text[8];

	assert(!strcmp(options_expect("name|phase|site", text, sizeof(text)), "name, p"));
	assert(!strcmp(options_expect("TYPE", text, sizeof(text)), "DRAM, L"));
}
