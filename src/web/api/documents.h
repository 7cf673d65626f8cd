/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers with rows, and those about the past. Each is a struct route's function. */

#include <stdio.h>

struct routes_ask;

int details_buffers(struct routes_ask *ask, FILE *out);
int details_leaks(struct routes_ask *ask, FILE *out);
int details_incidents(struct routes_ask *ask, FILE *out);
int details_history(struct routes_ask *ask, FILE *out);
int details_series(struct routes_ask *ask, FILE *out);
