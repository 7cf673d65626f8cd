/* SPDX-License-Identifier: Apache-2.0 */

/* A table by address: a snapshot has each text once. */

#include "answers/document-stacks.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/emit.h"
#include "base/hash.h"
#include "model/sites/stack.h"

/* A list with more stacks than that writes some of them again, which takes time but no memory. */
#define STACKS_KEPT 4096u
#define STACKS_NEAR 4u /* places that are tried for one */

struct stacks_one {
	const struct stack *stack; /* NULL = this place is free */
	char *members;             /* owned */
	size_t length;
};

struct document_stacks {
	struct stacks_one kept[STACKS_KEPT];
};

void document_stacks_put_one(struct emit *json, const struct stack *stack)
{
	char calls[STACK_LINE];

	if (stack)
		emit_string(json, "calls", stack_calls(stack, calls, sizeof(calls)));
	call_stack_put(json, stack);
}

/* The place of a stack: its own, else a free one, else one that is given up for it. */
static struct stacks_one *stacks_place(struct document_stacks *stacks, const struct stack *stack)
{
	uint64_t hash = hash_u64((uintptr_t)stack);

	for (uint64_t i = 0; i < STACKS_NEAR; i++) {
		struct stacks_one *one = &stacks->kept[(hash + i) % STACKS_KEPT];

		if (!one->stack || one->stack == stack)
			return one;
	}
	return &stacks->kept[hash % STACKS_KEPT];
}

/* False: there is no memory for it. */
static bool stacks_fill(struct stacks_one *one, const struct stack *stack)
{
	struct stacks_one made = {.stack = stack};
	FILE *out = open_memstream(&made.members, &made.length);
	struct emit members = EMIT_MEMBERS_INIT(out);

	if (!out)
		return false;
	document_stacks_put_one(&members, stack);
	if (fclose(out) != 0) {
		free(made.members);
		return false;
	}
	free(one->members);
	*one = made;
	return true;
}

void document_stacks_put(struct document_stacks **known, struct emit *json,
			 const struct stack *stack)
{
	struct stacks_one *one;

	if (stack && !*known)
		*known = calloc(1, sizeof(**known));
	one = stack && *known ? stacks_place(*known, stack) : NULL;
	if (one && (one->stack == stack || stacks_fill(one, stack)))
		emit_members(json, one->members, one->length);
	else
		document_stacks_put_one(json, stack);
}

void document_stacks_cleanup(struct document_stacks **known)
{
	for (size_t i = 0; *known && i < STACKS_KEPT; i++)
		free((*known)->kept[i].members);
	free(*known);
	*known = NULL;
}
