/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What documents of devices and of processes share. */

#include <stdbool.h>
#include <stdint.h>

struct document_commands;
struct emit;
struct filter;
struct snapshot;

/* What is written of processes. */
struct document_scope {
	const struct filter *filter;
	struct document_commands *commands;
	bool counters;
};

/* "processes", "exact" and "next". */
void document_processes(struct emit *json, const struct snapshot *snapshot,
			const struct document_scope *scope);

/* For tables of struct snapshot_memory: null if it is not known for all buffers. */
void document_put_occupied(struct emit *json, const char *key, const void *row);
