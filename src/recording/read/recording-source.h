/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* More of a source that recording_source_new() made: as book-source.h has it for this machine. */

#include "recording/read/recording.h"

struct collect_sources;
struct scan;

/* The arguments of collect_machine() for such a source; only borrowed. */
void recording_source_sources(struct source *source, struct collect_sources *ret_sources);

/* Its books, for callers that need more of one than a snapshot holds. */
struct scan *recording_source_scan(struct source *source);
