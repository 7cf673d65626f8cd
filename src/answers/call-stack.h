/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A stack in a document: "stack", a list of frames, innermost first, and "site", the frame that stands for it
 * (model/sites/site.h). Each row that has a stack has these members.
 *
 *   struct stack ──► call_stack_of() ──► struct call_stack ──► JSON
 *   struct stack, struct site ◄── call_stack_keep(), call_stack_site() ◄── struct call_stack ◄── JSON
 */

#include "answers/fields.h"
#include "model/sites/site.h"

struct pool;

struct call_stack_site {
	struct frame frame;
	const struct frame *user, *via; /* NULL = none */
	const struct frame *callers;
	size_t caller_count;
};

struct call_stack {
	const struct frame *frames;
	size_t count;
	const struct call_stack_site *site; /* NULL = none */
};

/* What a call_stack points to besides its frames. */
struct call_stack_room {
	struct site chosen;
	struct call_stack_site site;
};

extern const struct field call_stack_fields[];
extern const struct field call_stack_chosen[];       /* of a call_stack, without its frames */
extern const struct field call_stack_frame_fields[]; /* of struct frame, in "stack" */
extern const struct field call_stack_site_fields[];
extern const struct field
	call_stack_place_fields[]; /* of struct frame, without what is rarely known */

/* @stack: NULL = none. */
struct call_stack call_stack_of(const struct stack *stack, struct call_stack_room *room);

/* As a document has it; NULL = there is none. */
const struct call_stack_site *call_stack_site_of(const struct site *site,
						 struct call_stack_site *room);

/* Back from a document: the stack in a pool (NULL: it has no frames, or there is no memory), and the site. */
const struct stack *call_stack_keep(const struct call_stack *row, struct pool *pool);
struct site call_stack_site(const struct call_stack_site *row);

/* The members in a document that has no row of its own for them. */
void call_stack_put(struct emit *json, const struct stack *stack);
void call_stack_put_site(struct emit *json, const struct site *site); /* "site" alone */
