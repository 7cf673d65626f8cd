/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The members of a buffer that come from its stack: "calls", "stack" and "site". Taking a stack
 * apart costs more than all the rest of a row, and thousands of buffers have the same few stacks:
 * so what a stack becomes is kept for as long as a list is written.
 */

struct emit;
struct stack;

/* Of one list. Opaque; NULL as long as there is nothing to keep. */
struct document_stacks;

/*
 * Writes them. @stack as in a snapshot_buffer; kept by its address, so it must live as long as
 * *@known, and not change.
 */
void document_stacks_put(struct document_stacks **known, struct emit *json,
			 const struct stack *stack);

/* The same for a single row, with nothing kept. */
void document_stacks_put_one(struct emit *json, const struct stack *stack);

/* For CLEANUP(). */
void document_stacks_cleanup(struct document_stacks **known);
