/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.history/1: what happened at an address. */

#include <stddef.h>
#include <stdint.h>

struct document;
struct history;
struct incident_row;
struct leaks_row;
struct snapshot;

/* The daemon's record of an address. */
struct history_past {
	const struct leaks_row *leaks;
	const struct incident_row *incidents;
	size_t leak_count, incident_count;
	const char *leaks_json, *incidents_json; /* the daemon has them as JSON instead */
};

struct history_answer {
	const struct snapshot *snapshot;
	const struct history *history;
	const struct history_past *past; /* NULL = there was no daemon to ask */
	uint64_t address;
};

extern const struct document history_document; /* its row: an answer */
