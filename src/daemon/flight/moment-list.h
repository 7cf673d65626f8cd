/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happened, and when, for charts: starts and ends of processes, marks, phases, tests. Whoever knows of
 * more adds it. Marks, phases and tests are details: there are none of processes whose details the asker may
 * not see.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"
#include "model/snapshot.h"

struct black_box_file;
struct document;
struct emit;
struct query;
struct query_asker;
struct recording;
struct snapshot;

#define MOMENT_LIST_MAX 65536u          /* before the limit of the request */
#define MOMENT_LIST_EVENTS_MAX 1000000u /* that are looked through for phases */
#define MOMENT_LIST_PHASES_MAX 4096u    /* of a book */

struct moment_list_one {
	uint64_t time_ns;
	const char *kind;
	struct process_id process;
	const char *comm; /* NULL = not known, likewise the others */
	bool has_device;
	uint32_t device;
	const char *name;
	const char *incident;
};

struct moment_list {
	const struct query *query;       /* with both times set */
	const struct query_asker *asker; /* NULL = sees all */
	struct snapshot *texts;          /* owns all of them */
	struct moment_list_one *list;
	size_t count, capacity;
	bool is_cut; /* there are more */
	struct snapshot_reach reach;
};

/* 0 or -ENOMEM. Deinit it in any case. */
int moment_list_init(struct moment_list *list, const struct query *query,
		     const struct query_asker *asker);
void moment_list_deinit(struct moment_list *list);

/* If it is asked for; texts are copied. 0 or -ENOMEM. */
int moment_list_add(struct moment_list *list, const struct moment_list_one *one);

/* Whether the list has something of a process. */
bool moment_list_has(const struct moment_list *list, struct process_id process);

/* Whether it has something of that kind at that time. */
bool moment_list_has_kind(const struct moment_list *list, const char *kind, uint64_t time_ns);

/* What a recording knows; for moment_cache_read(), whose context is the list. 0 or a negative errno. */
int moment_list_add_recording(void *context, struct recording *recording,
			      const struct black_box_file *file);

/* In the order of time; only the newest, if there are too many. */
void moment_list_finish(struct moment_list *list);

extern const struct document moment_list_document; /* its row: a finished list */
void moment_list_write(struct emit *json, const struct moment_list *list, uint64_t now_ns);
