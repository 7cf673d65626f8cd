/* SPDX-License-Identifier: Apache-2.0 */

#include "base/keyword.h"

#include "base/testing/unit.h"

#define SAYS(text, word) keyword_is(text, sizeof(text) - 1, word)
#define NO(text) keyword_is_no(text, sizeof(text) - 1)
#define YES(text) keyword_is_yes(text, sizeof(text) - 1)

UNIT(capitals_and_blanks_do_not_matter)
{
	assert(SAYS("auto", "auto") && SAYS("AUTO", "auto") && SAYS("Auto", "auto"));
	assert(SAYS(" auto", "auto") && SAYS("\tauto  ", "auto"));
	assert(!SAYS("aut", "auto") && !SAYS("autos", "auto") && !SAYS("au to", "auto"));
	assert(!SAYS("", "auto") && SAYS("  ", ""));
	/* What follows the length is ignored. */
	assert(keyword_is("offline", 3, "off"));
}

UNIT(words_for_yes_and_no_are_understood)
{
	assert(NO("off") && NO("0") && NO("No") && NO("NONE") && NO(""));
	assert(YES("on") && YES("1") && YES("Yes"));
	assert(!NO("auto") && !YES("auto") && !NO("00") && !YES("11") && !YES(""));
}

UNIT(numbers_are_whole_and_in_range)
{
	assert(keyword_number("1", 64) == 1 && keyword_number("64", 64) == 64);
	assert(keyword_number("08", 64) == 8);
	assert(keyword_number("0", 64) == 0 && keyword_number("65", 64) == 0);
	assert(keyword_number("", 64) == 0 && keyword_number("8x", 64) == 0);
	assert(keyword_number("-1", 64) == 0 && keyword_number(" 8", 64) == 0);
	assert(keyword_number("1.5", 64) == 0 && keyword_number("18446744073709551617", 64) == 0);
}
