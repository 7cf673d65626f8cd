/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a client prefers, by its Accept headers: the format of metrics, and whether answers are
 * compressed. And what it has already.
 */

#include <stdbool.h>

/*
 * Whether @accept (NULL = no header) prefers OpenMetrics 1.0.0 to the plain text format. Without a
 * preference the answer is plain text.
 */
bool accept_header_prefers_openmetrics(const char *accept);

/* Whether @accept_encoding (NULL = no header) accepts gzip. Without a header it does not. */
bool accept_header_takes_gzip(const char *accept_encoding);

/*
 * Whether @if_none_match (NULL = no header) names the quoted @tag, or anything. All our tags are weak:
 * they match with or without "W/", so it is enough that @tag occurs.
 */
bool accept_header_has_tag(const char *if_none_match, const char *tag);
