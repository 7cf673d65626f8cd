/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names that a limit of phases or call sites may be about. */

#include <stdbool.h>
#include <stddef.h>

struct budget_limit;
struct budget_summary;

/* Iterates over the files and functions of a stack, as stack_calls() writes it; @next is changed. */
struct budget_names {
	char *next;     /* NULL: no frame is left */
	char *function; /* of the frame whose file was returned */
};

/* False: there are no more. */
bool budget_names_next(struct budget_names *names, const char **ret_name);

#define BUDGET_NEAR_MAX 3u
#define BUDGET_NEAR_SIZE 128u /* longer names are cut */

/* Names that were seen, for a limit that matches nothing. */
struct budget_near {
	char names[BUDGET_NEAR_MAX][BUDGET_NEAR_SIZE];
	size_t count;
	bool is_near; /* false: none resembles the limit's, these held most */
};

struct budget_near budget_near(const struct budget_limit *limit,
			       const struct budget_summary *summary);
