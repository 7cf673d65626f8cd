/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much a program may hold: limits of memory types, devices, phases and call sites, and which of
 * them a run has exceeded. What the run held comes as a summary (cli/budget/budget-summary.h), so that
 * it does not matter where that is from.
 *
 * Each limit is for one process, one device and one type at a time. Peaks of several processes need not
 * coincide, so their sum would be an upper bound that may never have been reached.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct budget_summary;
struct budget_moment;
struct budget_part;

#define BUDGET_ANY UINT32_MAX

enum budget_subject {
	BUDGET_MEMORY, /* all that is held */
	BUDGET_PHASE,  /* what was allocated in a phase */
	BUDGET_SITE,   /* what was allocated at a call site */
};

struct budget_limit {
	char *key;       /* as it was written, owned */
	uint32_t device; /* BUDGET_ANY: each of them */
	uint32_t type;   /* BUDGET_ANY: each of them */
	enum budget_subject subject;
	const char *pattern; /* of the phase or call site, within the key */
	uint64_t bytes;
	bool is_optional; /* a run in which its phase or call site does not exist is right, too */
};

struct budget {
	struct budget_limit *limits;
	size_t count, capacity;
};

#define BUDGET_NULL ((struct budget){.limits = NULL})

void budget_deinit(struct budget *budget);

/*
 * Adds a limit, or changes it if it is there. @key: [DEVICE:]TYPE, or [DEVICE:][TYPE:] and phase:NAME or
 * site:NAME. NAME is a pattern as of a shell. 0 or -EINVAL.
 */
int budget_add(struct budget *budget, const char *key, uint64_t bytes);

/* Adds "KEY=SIZE", as in --limit. 0, -EINVAL or -ERANGE. */
int budget_add_text(struct budget *budget, const char *text);

/* Adds the limits of @more, which count instead of equal ones. */
void budget_add_all(struct budget *budget, const struct budget *more);

/* Marks the limit @key as optional. False: there is no such limit. */
bool budget_set_optional(struct budget *budget, const char *key);

/* The most that was found of what a limit is about. */
struct budget_verdict {
	const struct budget_limit *limit;
	const struct budget_moment *moment; /* when; NULL: nothing of it was ever seen */
	uint64_t bytes;
	bool is_exact; /* false: at least that much */
	bool is_over;
	/*
	 * No phase or frame has the name, on no device, and the limit is not optional: it is misspelled, or
	 * the code has another name now. What it should guard was not checked, so this is a failure.
	 */
	bool is_unmatched;
};

/* @ret_verdicts: one for each limit, in their order. Return: how many are exceeded or unmatched. */
size_t budget_judge(const struct budget *budget, const struct budget_summary *summary,
		    struct budget_verdict *ret_verdicts);

/* Whether a part of what was held counts for the limit: a call site by any frame of its stack. */
bool budget_counts(const struct budget_limit *limit, const struct budget_part *part);
