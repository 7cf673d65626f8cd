/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Patterns that name frames: "*" stands for any text, "?" for one character. A pattern matches a
 * frame by its function (with its namespaces, without parameters), its file or its module, the
 * latter two with or without folders; one that ends with "::" matches all functions inside that
 * namespace or class. A list is separated by "," or ":", where "::" separates nothing.
 */

#include <stdbool.h>
#include <stddef.h>

struct frame;

/* Whether one of them matches. @patterns may be NULL. */
bool frame_patterns_match(const char *patterns, const struct frame *frame);

/*
 * Where the name of a function begins and how long it is, in the text that a demangler gives: without
 * a template's return type and without parameters.
 */
const char *frame_patterns_name(const char *function, size_t *ret_length);
