/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.buffers/1: every live buffer of a snapshot, or groups of them. */

#include <stdbool.h>
#include <stdint.h>

#include "answers/call-stack.h"
#include "answers/fields.h"
#include "answers/sites.h"
#include "model/sites/group.h"

struct document;
struct document_stacks;
struct emit;
struct snapshot;
struct snapshot_buffer;
struct snapshot_process;

struct buffers_row {
	uint32_t pid, device, type, space, banks, refs, thread, flags, kernel;
	const char *comm, *name, *phase;
	const char *process_phase; /* NULL = none, or the buffer's own phase shows it */
	uint64_t device_uid;       /* 0 = not known */
	uint64_t address, size, size_per_bank, occupied, born_ns, age_ns;
	bool has_occupied, is_kernel, is_ended, is_closed;

	/* Of a snapshot: its stack, and what stacks of its list became; NULL = it stands alone. */
	const struct stack *stack;
	struct document_stacks **stacks;

	/* Of a document. */
	const char *calls; /* NULL = no stack */
	struct call_stack frames;
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

/* What a group has that is of one call site. */
struct buffers_site {
	uint32_t type;
	const char *calls;       /* NULL = no stack */
	struct call_stack stack; /* only its site */
	struct site_names names;
};

struct buffers_group {
	const char *key;   /* that scripts compare; NULL = its buffers have none */
	const char *shown; /* what people read instead; NULL = the key */
	uint64_t bytes, buffers, oldest_ns;
	uint64_t age_ns; /* of the oldest */
	uint32_t pid;    /* if its sites are per process */
	const char *comm;
	bool is_site;
	struct buffers_site site;
};

/* A group that is made, and what it points to. */
#define BUFFERS_KEY 8192u /* a type and a text of the pool */
struct buffers_group_room {
	struct buffers_group group;
	char key[BUFFERS_KEY], calls[BUFFERS_KEY];
	struct call_stack_room stack;
};

/* Groups that are made of a list when they are needed; or those of a document. */
struct buffers_groups {
	const struct buffers_group *rows;
	size_t count;

	struct group_list list; /* without any: of a document; the rest is only for a list */
	const struct snapshot *snapshot;
	enum group_kind kind;
	struct buffers_group_room *room; /* to write them */
};

extern const struct field buffers_group_fields[];
extern const struct field buffers_groups_fields[]; /* of buffers_groups */
#define BUFFERS_GROUP_CSV "key,bytes,buffers,oldest_ns"
#define BUFFERS_GROUP_TABLE "bytes,buffers,age,key" /* the last title is that of the kind */

struct buffers_groups buffers_groups_of(const struct snapshot *snapshot, enum group_kind kind,
					const struct group_list *list,
					struct buffers_group_room *room);

/* One of them, which may be in the room. */
const struct buffers_group *buffers_groups_at(const struct buffers_groups *groups, size_t at,
					      struct buffers_group_room *room);

/* The document with groups in place of buffers. */
void buffers_put_groups(struct emit *json, const struct snapshot *snapshot, enum group_kind kind,
			const struct group_list *list);
