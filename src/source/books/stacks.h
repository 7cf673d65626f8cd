/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The stacks of a book, for those who do not read the rest of it: who follows its events and wants each
 * stack as text, and who wants to know the names of its frames before somebody asks.
 */

#include <stdint.h>

struct namer;
struct pool;
struct scan_book;
struct stacks;

/* Texts of @book's stacks; both must stay. 0 or a negative errno. */
int stacks_new(struct stacks **ret_stacks, struct scan_book *book, struct namer *namer);
struct stacks *stacks_free(struct stacks *stacks);

/* Stack @id as one line, outermost frame first, until the next call. NULL = none, or no memory. */
const char *stacks_text(struct stacks *stacks, uint32_t id);

/*
 * Asks @namer for the native frames of the stacks from @next on (0 = the first), of @max of them at most,
 * and moves @next behind them. What it is told lives as long as @texts. Return: how many stacks there
 * were; fewer than @max: that was all for now; or a negative errno.
 */
int stacks_tour(struct scan_book *book, struct namer *namer, struct pool *texts, uint32_t max,
		uint32_t *next);
