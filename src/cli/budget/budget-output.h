/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Limits and what became of them: for people, for scripts, and for CI systems. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "answers/fields.h"
#include "cli/budget/budget-summary.h"
#include "cli/budget/budget.h"

struct document;
struct run_report_part;

struct budget_result {
	struct budget budget;
	struct budget_summary summary;
	struct budget_verdict *verdicts; /* one for each limit */
	size_t over;                     /* how many are exceeded */
	size_t failed;                   /* how many are exceeded, or match nothing */
	/* Whether leaks count, too: NULL = no, "" = there are none, else what was leaked. Not owned. */
	const char *leaks;
};

#define BUDGET_RESULT_NULL ((struct budget_result){.verdicts = NULL})

/* Judges the summary by the budget. */
void budget_result_judge(struct budget_result *result);
void budget_result_deinit(struct budget_result *result);

/* All limits, or only those that fail, with the call sites that held most. */
void budget_put_text(const struct budget_result *result, bool all, FILE *out);
void budget_put_markdown(const struct budget_result *result, FILE *out);

/* As a document has it, which points to the part. */
struct run_report_part budget_part_row(const struct budget_part *part);

extern const struct document check_document;

/* "limits", of a struct budget_result. */
extern const struct field budget_result_fields[];

/* JUnit's XML, a test case for each limit, and one for leaks. @context: a struct budget_result. */
void budget_put_junit(const void *context, FILE *out);

/* An annotation of GitHub for each limit that fails, at the call site that held most. */
void budget_put_github(const struct budget_result *result, FILE *out);

/* One annotation: an error at a place, of which @file may be NULL and @line 0. Texts from anywhere. */
void budget_put_annotation(const char *file, uint32_t line, const char *text, FILE *out);
