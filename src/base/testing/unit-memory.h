/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Allocations that fail, so that a case can test every path without memory. Only for programs that link with
 * unit_memory_dep: our own calls of malloc() and its relatives then come here; those inside of libraries do
 * not.
 */

/* Does something, asserts that it is right or missing, and releases it. Return: 0 or -ENOMEM. */
typedef int unit_memory_fn(void *context);

/*
 * Calls @try again and again: at first its first allocation fails, then only its second, and so on, until all
 * succeed; of many, fewer and fewer are tried. Asserts that the last call returns 0. Return: how many
 * allocations it took.
 */
unsigned long unit_memory_sweep(unit_memory_fn *try, void *context);

/* For checks within a try: until it returns, nothing fails any more. */
void unit_memory_spare(void);
