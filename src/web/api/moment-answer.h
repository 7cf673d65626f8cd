/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parameter "at": documents of a moment of the past. */

#include <stdbool.h>
#include <stdio.h>

struct routes_ask;
struct snapshot_request;

/*
 * Puts the moment that is asked for into @request, if there is one. @has_sums: sums are an answer, too.
 * 0, or -EINVAL or -ENODATA with a problem.
 */
int moment_answer_request(struct routes_ask *ask, bool has_sums, struct snapshot_request *request);

/* What happened, and when. */
int moment_answer_list(struct routes_ask *ask, FILE *out);

/* Explains what the provider could not do. Returns @result. */
int moment_answer_result(struct routes_ask *ask, int result);
