/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a client would like to get, by its Accept headers: a format of metrics, packed files or not. */

#include <stdbool.h>

/*
 * Whether @accept (NULL = no header) prefers OpenMetrics 1.0.0 to the plain text format. Whoever does
 * not say gets plain text, as does who likes both equally, or neither.
 */
bool accept_header_prefers_openmetrics(const char *accept);

/* Whether @accept_encoding (NULL = no header) takes what gzip has packed. Who does not say, does not. */
bool accept_header_takes_gzip(const char *accept_encoding);
