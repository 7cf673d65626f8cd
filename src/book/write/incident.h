/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The incident area: events that a person should see, 256 entries for each kind. A repeat of the
 * same kind at the same call site raises the entry's count instead of taking a new one, so that a
 * thousand harmless unknown frees cannot crowd out the one double free. Never called under a
 * shard's lock.
 */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"

struct shard_buffer;
struct writer;
struct incident_sites;

/* @incident: everything but commit, count and last_time. */
void incident_add(struct writer *writer, uint32_t kind, const struct book_incident *incident);

/* @who lies where a trace had a buffer that @traced has allocated. */
void incident_trace_overlap(struct writer *writer, uint32_t device, const struct shard_buffer *who,
			    const struct book_party *traced);

/* Room for the next incidents of each kind. False: not for all. */
bool incident_prepare(struct writer *writer);

void incident_free_sites(struct incident_sites *sites);
