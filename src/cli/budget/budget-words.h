/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Words and walks that the outputs of limits share. Texts are escaped. */

#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"
#include "cli/budget/budget-output.h"

struct site_rows;

#define BUDGET_KEY_SHOWN 512u   /* longer names are cut */
#define BUDGET_WORDS 4096u      /* room for budget_words() */
#define BUDGET_PART_SHOWN 1024u /* a longer place is cut */

/* What became of a limit, in a sentence. */
const char *budget_words(const struct budget_result *result, const struct budget_verdict *verdict,
			 char *ret_text, size_t size);

/* A call site by its text (budget_find_rows()), or the name of its buffers. */
const char *budget_part_words(const struct budget_part *part, const char *site, char *ret_text,
			      size_t size);

/* Whether the parts are those of the moment itself, or there are none. */
bool budget_is_then(const struct budget_result *result, const struct budget_verdict *verdict);

/*
 * The next call site and phase that count for a limit; @at is 0 at first. If the parts of its moment are
 * not known, those that the process had at its end. False: no more.
 */
bool budget_next_part(const struct budget_result *result, const struct budget_verdict *verdict,
		      size_t *at, struct budget_part *ret_part);

/* The first @max of them, in that order, as a list whose rows are told apart. */
void budget_find_rows(const struct budget_result *result, const struct budget_verdict *verdict,
		      size_t max, struct site_rows *ret_rows);
