/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether two snapshots show the same: a hash over all totals, but not over the time of day. */

#include <stdint.h>

struct snapshot;

uint64_t snapshot_digest_totals(const struct snapshot *snapshot);
