/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The frames of a stack (model/sites/frames.h) as lines for the screen, one at a time. */

#include <stddef.h>

/* 0 for NULL. */
size_t stack_lines_count(const char *stack);

/* The frame @index, 0 = innermost, as "function (file:line)", cut at @size. "" if there is none. */
void stack_lines_text(const char *stack, size_t index, char *ret_text, size_t size);
