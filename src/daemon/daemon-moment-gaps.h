/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a moment of the past lacks, and says so: what is not known must not look as if it had not been
 * there.
 */

#include <stdint.h>

struct moment_cache;
struct snapshot;
struct store_reader;

/* What only the driver and tt-metal's regions tell. @totals: of now. */
void daemon_moment_gaps_driver(struct snapshot *snapshot, const struct snapshot *totals);

/*
 * Processes that have ended since, and whose books the flight recorder could not keep: those in
 * memory of the kernel module, and those beyond its bounds.
 */
void daemon_moment_gaps_ended(struct snapshot *snapshot, struct moment_cache *cache,
			      struct store_reader *reader);
