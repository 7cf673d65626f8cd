/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which of the two formats of metrics a client prefers, by its Accept header. */

#include <stdbool.h>

/*
 * Whether @accept (NULL = no header) prefers OpenMetrics 1.0.0 to the plain text format. Whoever does
 * not say gets plain text, as does who likes both equally, or neither.
 */
bool media_prefers_openmetrics(const char *accept);
