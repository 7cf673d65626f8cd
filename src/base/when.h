/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times as people write them. */

#include <stdbool.h>
#include <stdint.h>

/* "12.5", "90s", "2m30s", "3d"; a number without a unit is in seconds. */
bool when_duration(const char *text, uint64_t *ret_ns);

/* "16:03", "16:03:12.5" on the local day of @day_ns (CLOCK_REALTIME). */
bool when_time_of_day(const char *text, uint64_t day_ns, uint64_t *ret_ns);

/*
 * When something began, seen from @now_ns (CLOCK_REALTIME): "2h" before, the last "16:03", a local date
 * "2026-11-17", also with a time behind "T" or a blank, or whole ns since 1970. 0 or -EINVAL.
 */
int when_since(const char *text, uint64_t now_ns, uint64_t *ret_ns);
