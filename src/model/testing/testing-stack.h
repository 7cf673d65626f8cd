/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Stacks from lines, and lines from stacks, for tests. Both live until the program ends. */

#include <string.h>

#include "model/sites/stack.h"

static struct pool testing_stacks;

/* NULL for none. */
__attribute__((unused)) static const struct stack *testing_stack(const char *line)
{
	return stack_parse(&testing_stacks, line);
}

/* "" for none. */
__attribute__((unused)) static const char *testing_line(const struct stack *stack)
{
	char text[STACK_LINE];

	stack_line(stack, text, sizeof(text));
	return pool_long_text(&testing_stacks, text, strlen(text));
}
