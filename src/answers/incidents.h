/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ttmem.incidents/1: double frees, failed allocations and the like. A row is made from a book's incident, from the
 * daemon's database, or from the JSON of either.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/call-stack.h"
#include "answers/sites.h"

struct document;
struct emit;
struct snapshot;
struct snapshot_incident;

/* What happened first, or then. */
struct incident_party {
	uint64_t time_ns, size;
	uint32_t thread;
	const char *name, *phase;
	struct call_stack stack;
};

/* A process that held memory when an allocation failed, or one of two that overlap. */
struct incident_holder {
	uint32_t pid, user_id, type;
	const char *comm;
	uint64_t used, buffers;
};

struct incident_row {
	const char *kind, *comm, *explanation;
	uint64_t time_ns, last_ns;
	uint32_t pid, device, type, space, banks;
	bool has_address, has_largest_free, has_bank, has_devices;
	uint64_t device_uid, address, size, largest_free, size_per_bank, count;
	uint64_t bank_size, bank_free;
	const struct incident_party *first, *second; /* NULL = not known */

	/* Only the daemon's, of some kinds: */
	bool has_recording, has_holders, has_sites;
	uint64_t processes;
	const uint64_t *devices;
	const struct incident_holder *holders;
	const struct site_row *sites;
	size_t device_count, site_count;
	size_t holder_count;   /* also of an overlap in books */
	const char *recording; /* a file; NULL = none */
};

/* What the parties of a row point to. */
struct incident_room {
	struct incident_party first, second;
	struct call_stack_room first_stack, second_stack;
	struct incident_holder holders[2];
};

extern const struct field incident_fields[];
extern const struct field incident_holders[]; /* of a holder */

extern const struct field incident_list_fields[]; /* "incidents", of a snapshot */

struct incident_row incident_row_of(const struct snapshot *snapshot,
				    const struct snapshot_incident *incident,
				    struct incident_room *room);

void incident_put(struct emit *json, const struct snapshot *snapshot,
		  const struct snapshot_incident *incident);
/* For those who may not see more. */
struct incident_brief {
	const char *kind;
	uint32_t pid, device;
};

extern const struct document stream_document;    /* its row: an incident_brief */
extern const struct document incidents_document; /* its row: the snapshot */
