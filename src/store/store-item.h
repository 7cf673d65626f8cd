/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a put hands to the writer: a copy of the data, cut to its limits and with its texts
 * sanitized, so that the writer needs nothing of the caller's. Texts are offsets into one block; 0
 * is the empty text, which means none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"
#include "base/process-id.h"
#include "store/store-rows.h"
#include "store/store.h"

#define STORE_ITEM_NONE UINT32_MAX
#define STORE_TEXT_MAX POOL_TEXT_MAX /* the longest in a snapshot: a stack */

enum store_item_kind {
	STORE_ITEM_SAMPLE = 0,
	STORE_ITEM_INCIDENT = 1,
	STORE_ITEM_LEAK = 2,
	STORE_ITEM_ENDING = 3,
};

struct store_item_process {
	struct process_id id;
	uint32_t ns_pid;
	uint32_t uid;
	uint32_t owner; /* the user who may see its details; and in which namespaces: */
	uint64_t start_ns;
	uint32_t comm, user, container, source, namespaces;
};

struct store_item_sample {
	uint32_t process; /* index; STORE_ITEM_NONE = a whole device */
	uint32_t device;
	uint32_t type;
	uint64_t device_uid;
	uint64_t used;
	uint64_t buffers;
};

/* A call site of a leak, or its share where an allocation failed. */
struct store_item_site {
	uint32_t type;
	uint32_t name, phase, stack;
	uint32_t phases; /* of its buffers, as in struct store_part */
	uint32_t names;  /* likewise */
	uint32_t name_count;
	uint64_t bytes;
	uint64_t buffers;
	uint64_t oldest_ns;
};

/* One buffer of a call site, as the example of its leak. */
struct store_item_buffer {
	uint32_t site; /* index */
	uint32_t name, phase, stack;
	uint64_t device_uid;
	struct snapshot_buffer buffer; /* its texts must not be used */
};

struct store_item_party {
	uint32_t name, phase, stack;
	struct snapshot_party party; /* likewise */
};

/* An incident of the same call site that was joined; see store_item_join(). */
struct store_repeat {
	uint32_t device;
	uint64_t address, size;
	uint64_t count;
	int64_t what; /* what tells a process's incidents at one address apart */
};

#define STORE_REPEATS_MAX 256u /* of an item: as many as a book has entries of a kind */

struct store_item {
	struct store_item *next; /* the queue's, like the next two */
	uint64_t number;
	uint32_t lane;
	enum store_item_kind kind;
	size_t bytes; /* memory it uses */
	uint64_t cut; /* rows that did not fit */
	uint64_t time_ns;

	char *texts;
	size_t text_used, text_capacity;
	const char *text_last; /* the caller's text that was copied last, and its offset */
	uint32_t text_last_at;

	struct store_item_process *processes; /* the first is the owner of an incident or leak */
	size_t process_count, process_capacity;
	struct store_item_sample *samples; /* of incidents: holders */
	size_t sample_count, sample_capacity;
	struct store_item_site *sites;
	size_t site_count;
	struct store_item_buffer *buffers;
	size_t buffer_count, buffer_capacity;
	struct store_chunk *chunks; /* of a leak: its buffers */
	size_t chunk_count, chunk_capacity;

	/* An incident; its texts and its process must not be used. */
	struct snapshot_incident incident;
	uint32_t incident_kind, explanation;
	uint64_t device_uid;
	struct store_item_party first, second;
	uint64_t site_key;
	uint64_t first_ns; /* of all that were joined */
	struct store_repeat *repeats;
	size_t repeat_count, repeat_capacity;

	/* A leak, or an end. */
	struct ending ending;
	uint64_t leaked_bytes;
	uint64_t leaked_buffers;
};

/* Each returns NULL if memory has run out. */
struct store_item *store_item_sample(const struct snapshot *snapshot);
struct store_item *store_item_incident(const struct snapshot *snapshot,
				       const struct snapshot_incident *incident);
struct store_item *store_item_failure(const struct snapshot *snapshot,
				      const struct snapshot_incident *incident);

/*
 * @bytes_max: of its packed list of buffers, which is cut there. 0, with NULL if there is no leak;
 * or -ENOMEM.
 */
int store_item_leak(const struct snapshot *snapshot, uint32_t process, const struct ending *ending,
		    size_t bytes_max, struct store_item **ret_item);

/* NULL if memory has run out. */
struct store_item *store_item_ending(const struct snapshot *snapshot, uint32_t process,
				     const struct ending *ending);

/* The party whose stack is the site: who made the call that went wrong, else who allocated. */
const struct store_item_party *store_item_caller(const struct store_item *item);

/* An incident as others will have it that it is joined with. */
struct store_repeat store_item_repeat(const struct store_item *item);

/* For an incident that is otherwise complete: which call site it has. */
void store_item_set_site(struct store_item *item);

/* Whether both are of one call site in one process, and @to has room for another one. */
bool store_item_is_joinable(const struct store_item *item, const struct store_item *to);

/* @item stands for @old as well, which is to be freed. 0, or -1 without memory. */
int store_item_join(struct store_item *item, struct store_item *old);

/* Leaves out the list of buffers: the sums and call sites stay. */
void store_item_drop_rows(struct store_item *item);

struct store_item *store_item_free(struct store_item *item);

static inline const char *store_item_text(const struct store_item *item, uint32_t at)
{
	return item->texts + at;
}

/* For the files that create items. */
struct store_item *store_item_new(enum store_item_kind kind, uint64_t time_ns);

/* 0 or -ENOMEM; NULL gives 0, the empty text. */
int store_item_add_text(struct store_item *item, const char *text, uint32_t *ret_at);

/* The line of a stack, likewise. */
int store_item_add_stack(struct store_item *item, const struct stack *stack, uint32_t *ret_at);

/* A text of any length, which is copied in any case. */
int store_item_add_long_text(struct store_item *item, const char *text, size_t length,
			     uint32_t *ret_at);
int store_item_add_process(struct store_item *item, const struct snapshot_process *process);
int store_item_add_sample(struct store_item *item, const struct store_item_sample *sample);

/*
 * The buffers of a process, in the order of the snapshot, until the list is full or has so many
 * bytes. 0 or -ENOMEM.
 */
int store_item_list(struct store_item *item, const struct snapshot *snapshot, uint32_t process,
		    size_t bytes_max);

/* Sets the memory that it uses, once it is complete. */
void store_item_weigh(struct store_item *item);
