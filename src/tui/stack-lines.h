/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The frames of a stack (model/sites/stack.h) as lines for the screen, one at a time. */

#include <stddef.h>

struct stack;

/* 0 for NULL. */
size_t stack_lines_count(const struct stack *stack);

/* The frame @index, 0 = innermost, as "function (file:line)", cut at @size. "" if there is none. */
void stack_lines_text(const struct stack *stack, size_t index, char *ret_text, size_t size);
