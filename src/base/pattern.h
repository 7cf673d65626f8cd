/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Patterns in which "*" stands for any text and "?" for one byte; all else for itself. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the pattern stands for the whole text. Takes at most the product of both lengths, since
 * patterns may come from another process; fnmatch() may take exponential time.
 */
bool pattern_matches(const char *pattern, size_t pattern_length, const char *text,
		     size_t text_length);
