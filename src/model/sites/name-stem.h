/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names that differ only in their numbers, such as "kv.0" and "kv.117", were most likely given by one
 * line of code. Where no stack shows that line, their stem "kv.#" stands for it.
 */

#include <stddef.h>
#include <stdint.h>

#define NAME_STEM_NUMBER '#' /* replaces each number */

/* @name with "#" for its numbers, truncated to fit. Returns @ret_text. */
const char *name_stem(const char *name, char *ret_text, size_t size);

/* Orders names by their stems; NULL comes first. */
int name_stem_compare(const char *a, const char *b);

/* Equal for equal stems. */
uint64_t name_stem_hash(const char *name);
