/* SPDX-License-Identifier: Apache-2.0 */

/* Frames, and stacks in a pool. */

#include "model/sites/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"

bool frame_keep(struct frame *frame, struct pool *pool)
{
	const char **texts[] = {&frame->function, &frame->file, &frame->module, &frame->build_id};
	bool is_kept = true;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = *texts[i];

		*texts[i] = text ? pool_long_text(pool, text, strlen(text)) : NULL;
		is_kept &= !text || *texts[i];
	}
	return is_kept;
}

static bool frame_is_python(const char *file)
{
	const char *dot = strrchr(file, '.');

	/* Code typed in, generated or of the interpreter: "<stdin>", "<frozen runpy>". */
	if (file[0] == '<')
		return true;
	return dot && (strcmp(dot, ".py") == 0 || strcmp(dot, ".pyx") == 0);
}

void stack_maker_add(struct stack_maker *maker, const struct frame *frame)
{
	size_t count = maker->stack ? maker->stack->count : 0;
	struct stack *stack = array_grow(maker->stack, &maker->capacity,
					 sizeof(*stack) + (count + 1) * sizeof(*frame), 1);
	struct frame *to;

	if (!stack) {
		maker->is_lost = true;
		return;
	}
	maker->stack = stack;
	stack->count = count + 1;
	to = &stack->frames[count];
	*to = *frame;
	maker->is_lost |= !frame_keep(to, maker->pool);
	to->is_python = to->file && frame_is_python(to->file);
	if (!to->file)
		to->line = 0;
	if (to->function && strcmp(to->function, "?") == 0)
		to->function = NULL;
}

const struct stack *stack_maker_finish(struct stack_maker *maker)
{
	const struct stack *stack = NULL;

	/* A struct frame has no gaps. */
	if (maker->stack && !maker->is_lost)
		stack = pool_block(maker->pool, maker->stack,
				   sizeof(*stack) + maker->stack->count * sizeof(struct frame));
	free(maker->stack);
	*maker = STACK_MAKER_INIT(maker->pool);
	return stack;
}

_Static_assert(sizeof(struct frame) == 4 * sizeof(char *) + sizeof(uint32_t) + 4 * sizeof(bool),
	       "equal frames have equal bytes");

const struct stack *stack_copy(struct pool *pool, const struct stack *stack)
{
	struct stack_maker maker = STACK_MAKER_INIT(pool);

	for (size_t i = 0; stack && i < stack->count; i++)
		stack_maker_add(&maker, &stack->frames[i]);
	return stack_maker_finish(&maker);
}

static bool frame_begins_module(const char *function, const char *module)
{
	size_t length = strlen(module);

	return strncmp(function, module, length) == 0 && strncmp(function + length, "+0x", 3) == 0;
}

bool frame_is_address(const struct frame *frame)
{
	return !frame->file && frame->function && frame->module &&
	       frame_begins_module(frame->function, frame->module);
}

/* Whether namespace or class @name contains it. A template's return type comes first. */
static bool frame_is_member(const char *function, const char *name)
{
	size_t end = strcspn(function, "(");
	const char *found = strstr(function, name);

	return found && (size_t)(found - function) <= end &&
	       (found == function || found[-1] == ' ');
}

bool frame_is_reporting(const char *function, const char *module)
{
	static const char shim[] = "libttmem-metal";

	if (module && strncmp(module, shim, sizeof(shim) - 1) == 0 && strstr(module, ".so"))
		return true;
	return function && (frame_is_member(function, "ttmem_metal::") ||
			    frame_is_member(function, "tt::tt_metal::GraphTracker::"));
}
