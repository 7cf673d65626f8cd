/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All books of the flight recorder as they were at one moment, for the collector. A process that had
 * ended by then is not in it, as it is not in a snapshot of now; one whose books cannot be restored is
 * in it without figures, and is not exact.
 */

#include <stddef.h>
#include <stdint.h>

struct black_box_file;
struct collect_sources;
struct recording;
struct source;

/* What the restored books of one moment take at most, and those of one process. */
#define MOMENT_SOURCE_ROOM (UINT64_C(512) << 20)
#define MOMENT_SOURCE_BOOK_ROOM (UINT64_C(128) << 20)

/* @recording: of @file; NULL = it has no books. Both are only read while this runs. */
int moment_source_new(struct source **ret_source, struct recording *recording,
		      const struct black_box_file *file, uint64_t time_ns);

/* The arguments of collect_machine(); only borrowed. */
void moment_source_sources(struct source *source, struct collect_sources *ret_sources);

/* Memory of its books, and how many there are: each has a descriptor. */
uint64_t moment_source_size(struct source *source);
size_t moment_source_books(struct source *source);

/* Processes without figures. */
size_t moment_source_unknown(struct source *source);
