/* SPDX-License-Identifier: Apache-2.0 */

/* Matching with "*" and "?". */

#include "base/pattern.h"

#include <stdint.h>

bool pattern_matches(const char *pattern, size_t pattern_length, const char *text,
		     size_t text_length)
{
	size_t p = 0, t = 0, star = SIZE_MAX, retry = 0;

	while (t < text_length) {
		if (p < pattern_length && pattern[p] == '*') {
			star = p++;
			retry = t;
		} else if (p < pattern_length && (pattern[p] == '?' || pattern[p] == text[t])) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			/* Only the last star needs another try: earlier ones took the least. */
			p = star + 1;
			t = ++retry;
		} else {
			return false;
		}
	}
	while (p < pattern_length && pattern[p] == '*')
		p++;
	return p == pattern_length;
}
