/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.buffers/1: every live buffer of a snapshot, or groups of them. */

#include <stdbool.h>
#include <stdint.h>

#include "answers/fields.h"
#include "model/sites/group.h"

struct document;
struct document_stacks;
struct emit;
struct snapshot;
struct snapshot_buffer;
struct snapshot_process;

struct buffers_row {
	const struct snapshot_buffer *buffer;
	const struct snapshot_process *process;
	struct document_stacks **stacks; /* of the list that it is in; NULL = it stands alone */
	uint64_t device_uid;             /* 0 = not known */
	uint64_t occupied;
	uint64_t age_ns;
	const char *process_phase; /* NULL = none, or the buffer's own phase shows it */
	uint32_t type, refs, flags, banks, kernel;
	bool has_occupied, is_kernel, is_ended, is_closed;
};

extern const struct field buffers_fields[];

/* Their order in CSV and in a table. */
#define BUFFERS_CSV                                                                           \
	"pid,comm,device,device_uid,type,address,size,refs,born_ns,age_ns,name,phase,thread," \
	"flags,space,occupied"
#define BUFFERS_TABLE "size,occupied,type,device,pid,comm,address,refs,age_ns,name,phase"

struct buffers_row buffers_row_of(const struct snapshot *snapshot,
				  const struct snapshot_buffer *buffer);

/* The row alone, as other documents have it: leaks, messages about leaks, "ttmem run". */
void buffers_put_row(struct emit *json, const struct snapshot *snapshot,
		     const struct snapshot_buffer *buffer);

extern const struct document buffers_document, buffers_groups_document;
void buffers_put(struct emit *json, const struct snapshot *snapshot);

/* A group of a list, with the key that scripts compare. */
struct buffers_group {
	const struct call_site *site;
	const struct snapshot_process *process; /* if its sites are per process */
	const struct call_site *names;          /* its largest */
	const char *key;                        /* NULL = its buffers have none */
	const char *shown;                      /* what people read instead; NULL = the key */
	uint64_t age_ns;                        /* of the oldest */
	bool is_site;
};

extern const struct field buffers_group_fields[];
#define BUFFERS_GROUP_CSV "key,bytes,buffers,oldest_ns"
#define BUFFERS_GROUP_TABLE "bytes,buffers,age,key" /* the last title is that of the kind */

/* @key: room for the key, at least BUFFERS_KEY bytes. */
#define BUFFERS_KEY 8192u /* a type and a text of the pool */
struct buffers_group buffers_group_of(const struct snapshot *snapshot, enum group_kind kind,
				      const struct group_list *list, size_t at, char *key);

/* The document with groups in place of buffers; and its member "groups" alone. */
void buffers_put_groups(struct emit *json, const struct snapshot *snapshot, enum group_kind kind,
			const struct group_list *list);
void buffers_put_group_rows(struct emit *json, const struct snapshot *snapshot,
			    enum group_kind kind, const struct group_list *list);
