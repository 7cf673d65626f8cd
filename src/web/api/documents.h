/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Documents with rows, and those about history. Each function is the make() of a struct route. */

#include <stdio.h>

struct routes_ask;

int documents_buffers(struct routes_ask *ask, FILE *out);
int documents_leaks(struct routes_ask *ask, FILE *out);
int documents_ended(struct routes_ask *ask, FILE *out);
int documents_incidents(struct routes_ask *ask, FILE *out);
int documents_history(struct routes_ask *ask, FILE *out);
int documents_peaks(struct routes_ask *ask, FILE *out);
int documents_growth(struct routes_ask *ask, FILE *out);
int documents_commands(struct routes_ask *ask, FILE *out);
int documents_series(struct routes_ask *ask, FILE *out);
