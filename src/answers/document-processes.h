/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What documents of devices and of processes share. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "model/snapshot.h"

struct by_user;
struct document_commands;
struct emit;
struct filter;

/* What is written of devices and processes: the row of these documents. */
struct document_scope {
	const struct snapshot *snapshot;
	const struct filter *filter;
	struct document_commands *commands;
	const struct by_user *users; /* NULL = without them */
	bool counters;
	struct snapshot_memory totals; /* of all devices */
};

/* Of a struct snapshot_device. */
extern const struct field document_device[];

/* Of a struct process_id: what readers need of a process. */
extern const struct field document_process_id[];

/* A process, and what is written of it without its devices. */
struct document_process {
	const struct document_scope *scope;
	const struct snapshot_process *process;
	uint64_t last_ns;
};

extern const struct field document_process[];

/* Of "processes". */
const void *document_each_process(const void *context, size_t *at, struct fields_room *room);
extern const struct field document_smi_process[];

/* "users" */
extern const struct field document_users[];
void document_put_users(struct emit *json, const char *key, const void *row);

/* For tables of struct snapshot_memory: null if it is not known for all buffers. */
void document_put_occupied(struct emit *json, const char *key, const void *row);
extern const struct field document_occupied[];
