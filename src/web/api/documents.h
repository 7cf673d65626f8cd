/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answers with rows, and those about the past. Each is a struct route's function. */

#include <stdio.h>

struct routes_ask;

int documents_buffers(struct routes_ask *ask, FILE *out);
int documents_leaks(struct routes_ask *ask, FILE *out);
int documents_incidents(struct routes_ask *ask, FILE *out);
int documents_history(struct routes_ask *ask, FILE *out);
int documents_series(struct routes_ask *ask, FILE *out);
