/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Writes incidents and leak reports. A repetition at the same call site, in the same user's
 * programs of the same name, raises a count; only the newest examples keep the details.
 */

#include "store/store-record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/text.h"
#include "model/sites/name-stem.h"
#include "store/store-db.h"
#include "store/store-item.h"

int store_record_process(struct store_db *db, const struct store_item *item, uint32_t at,
			 int64_t *ret_id)
{
	const struct store_item_process *process = &item->processes[at];
	const struct store_value values[] = {
		STORE_INT(process->id.pid),
		STORE_CUT(process->id.start_ticks),
		STORE_INT(process->uid),
		STORE_TEXT(store_item_text(item, process->comm)),
		STORE_INT(db->boot),
		STORE_CUT(process->start_ns),
		STORE_INT(process->ns_pid),
		STORE_TEXT(store_item_text(item, process->user)),
		STORE_TEXT(store_item_text(item, process->container)),
		STORE_TEXT(store_item_text(item, process->source)),
	};
	int r = store_db_run(db, STORE_SQL_PROCESS_FIND, values, 5, ret_id);

	if (r == 0)
		r = store_db_run(db, STORE_SQL_PROCESS_ADD, values,
				 sizeof(values) / sizeof(values[0]), ret_id);
	return r < 0 ? r : 0;
}

#define STORE_STEM_SIZE TEXT_CLEAN_SIZE(POOL_TEXT_MAX)

/* A call site as in the table. */
struct store_record_site {
	const char *kind;
	int64_t type; /* -1 = unknown */
	const char *name;
	const char *phase;
	const char *stack; /* NULL = none */
	uint64_t count, bytes, buffers;
	uint64_t first_ns, last_ns;
};

/* Whose an action of the item's first process is: see store-schema.c. */
static int store_record_owner(struct store_db *db, const struct store_item *item,
			      int64_t *ret_owner)
{
	const struct store_item_process *process = &item->processes[0];
	const char *namespaces = store_item_text(item, process->namespaces);
	int r;

	*ret_owner = process->owner;
	if (!*namespaces)
		return 0;
	r = store_db_run(db, STORE_SQL_OWNER,
			 STORE_VALUES(STORE_INT(process->owner), STORE_TEXT(namespaces)),
			 ret_owner);
	return r < 0 ? r : 0;
}

/* Finds or creates the site of an action of the item's first process, and adds to its sums. */
static int store_record_site(struct store_db *db, const struct store_item *item,
			     const struct store_record_site *site, int64_t *ret_id)
{
	const struct store_item_process *process = &item->processes[0];
	int64_t owner = 0;
	int r = store_record_owner(db, item, &owner);

	if (r < 0)
		return r;
	r = store_db_run(
		db, STORE_SQL_SITE,
		STORE_VALUES(STORE_TEXT(site->kind), STORE_INT(site->type), STORE_INT(owner),
			     STORE_TEXT(store_item_text(item, process->comm)),
			     STORE_TEXT(site->name), STORE_TEXT(site->phase),
			     STORE_TEXT(site->stack ? site->stack : ""), STORE_CUT(site->count),
			     STORE_CUT(site->bytes), STORE_CUT(site->buffers),
			     STORE_CUT(site->first_ns), STORE_CUT(site->last_ns)),
		ret_id);

	return r < 0 ? r : 0;
}

/* An example as in the table. */
struct store_record_example {
	int64_t site, process;
	uint64_t time_ns, last_ns;
	uint32_t device;
	uint64_t device_uid;
	struct store_value address;
	uint64_t size;
	struct store_value largest_free;
	uint64_t count;
	const struct store_item_party *first, *second; /* NULL = unknown */
	uint32_t space;
	/* Of a failed allocation. */
	uint64_t size_per_bank, bank_size, bank_free;
	uint32_t banks, explanation;
};

#define STORE_PARTY(item, side)                                                           \
	(side) ? STORE_CUT((side)->party.time_ns) : STORE_NONE,                           \
		(side) ? STORE_INT((side)->party.thread) : STORE_NONE,                    \
		(side) ? STORE_BITS((side)->party.size) : STORE_NONE,                     \
		(side) ? STORE_TEXT(store_item_text((item), (side)->name)) : STORE_NONE,  \
		(side) ? STORE_TEXT(store_item_text((item), (side)->phase)) : STORE_NONE, \
		(side) ? STORE_TEXT(store_item_text((item), (side)->stack)) : STORE_NONE

/*
 * Replaces the same process's earlier example, and keeps its time: when it happened there first. The
 * oldest beyond the limit is deleted.
 */
static int store_record_example(struct store_db *db, const struct store_item *item,
				const struct store_record_example *example, int64_t *ret_id)
{
	struct store_value values[] = {
		STORE_INT(example->site),
		STORE_INT(example->process),
		STORE_CUT(example->time_ns),
		STORE_CUT(example->last_ns),
		STORE_INT(example->device),
		STORE_BITS(example->device_uid),
		example->address,
		STORE_BITS(example->size),
		example->largest_free,
		STORE_CUT(example->count),
		STORE_PARTY(item, example->first),
		STORE_PARTY(item, example->second),
		STORE_INT(example->space),
		STORE_BITS(example->size_per_bank),
		STORE_INT(example->banks),
		STORE_BITS(example->bank_size),
		STORE_BITS(example->bank_free),
		STORE_TEXT(store_item_text(item, example->explanation)),
	};
	int64_t earlier = INT64_MAX;
	int r = store_db_run(db, STORE_SQL_EXAMPLE_DROP, values, 2, &earlier);

	if (r > 0 && earlier < values[2].number)
		values[2] = STORE_INT(earlier);
	if (r >= 0)
		r = store_db_run(db, STORE_SQL_EXAMPLE_ADD, values,
				 sizeof(values) / sizeof(values[0]), ret_id);
	if (r >= 0)
		r = store_db_run(
			db, STORE_SQL_EXAMPLE_TRIM,
			STORE_VALUES(STORE_INT(example->site), STORE_INT(STORE_EXAMPLES_MAX)),
			NULL);
	return r < 0 ? r : 0;
}

/* Holders of memory where an allocation failed; no rows for other incidents. */
static int store_record_holders(struct store_db *db, const struct store_item *item, int64_t example)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < item->sample_count; i++) {
		const struct store_item_sample *holder = &item->samples[i];
		int64_t process = 0;

		r = store_record_process(db, item, holder->process, &process);
		if (r == 0)
			r = store_db_run(db, STORE_SQL_HOLDER_ADD,
					 STORE_VALUES(STORE_INT(example), STORE_INT(i),
						      STORE_INT(process), STORE_INT(holder->type),
						      STORE_CUT(holder->used),
						      STORE_CUT(holder->buffers)),
					 NULL);
	}
	for (uint32_t i = 0; r >= 0 && i < item->site_count; i++) {
		const struct store_item_site *site = &item->sites[i];

		r = store_db_run(db, STORE_SQL_HELD_ADD,
				 STORE_VALUES(STORE_INT(example), STORE_INT(i),
					      STORE_INT(site->type),
					      STORE_TEXT(store_item_text(item, site->name)),
					      STORE_TEXT(store_item_text(item, site->phase)),
					      STORE_CUT(site->bytes), STORE_CUT(site->buffers),
					      STORE_TEXT(store_item_text(item, site->stack)),
					      STORE_INT(site->name_count),
					      STORE_TEXT(store_item_text(item, site->names))),
				 NULL);
	}
	return r < 0 ? r : 0;
}

/*
 * A site is a stack, whatever the buffers are called. Without one it goes by the name without its
 * numbers, which most likely one line gave. @stem has room for any name.
 */
static struct store_record_site store_record_site_of(const struct store_item *item, char *stem)
{
	const struct snapshot_incident *incident = &item->incident;
	const struct store_item_party *caller = store_item_caller(item);
	uint32_t name = item->first.name ? item->first.name : item->second.name;
	uint32_t phase = item->first.phase ? item->first.phase : item->second.phase;

	if (caller->stack)
		name = phase = 0;
	return (struct store_record_site){
		.kind = store_item_text(item, item->incident_kind),
		.type = incident->type < BOOK_TYPES ? (int64_t)incident->type : -1,
		.name = name_stem(store_item_text(item, name), stem, STORE_STEM_SIZE),
		.phase = store_item_text(item, name ? 0 : phase),
		.stack = store_item_text(item, caller->stack),
		.first_ns = item->first_ns,
		.last_ns = item->time_ns,
	};
}

/* How many of an incident have been counted, and where; no site: none. */
struct store_record_seen {
	struct store_value key[9]; /* as the statements have it */
	int64_t site;
	int64_t count;
};

static int store_record_seen(struct store_db *db, int64_t process,
			     const struct store_record_site *site, const struct store_repeat *entry,
			     struct store_record_seen *ret_seen)
{
	struct store_record_seen seen = {
		.key = {STORE_INT(process), STORE_TEXT(site->kind), STORE_INT(site->type),
			STORE_INT(entry->device), STORE_BITS(entry->address),
			STORE_BITS(entry->size), STORE_INT(entry->what)},
	};
	int r = store_db_run(db, STORE_SQL_SEEN_SITE, seen.key, 7, &seen.site);

	if (r > 0)
		r = store_db_run(db, STORE_SQL_SEEN_COUNT, seen.key, 7, &seen.count);
	*ret_seen = seen;
	return r < 0 ? r : 0;
}

/* Adds what is new to the site's count. */
static int store_record_count(struct store_db *db, const struct store_item *item,
			      struct store_record_seen *seen, int64_t site, int64_t count)
{
	int r = store_db_run(db, STORE_SQL_SEEN_FORGET, seen->key, 7, NULL);

	seen->key[7] = STORE_INT(site);
	seen->key[8] = STORE_INT(count);
	if (r >= 0)
		r = store_db_run(db, STORE_SQL_SEEN_SET, seen->key, 9, NULL);
	if (r >= 0)
		r = store_db_run(db, STORE_SQL_SITE_COUNT,
				 STORE_VALUES(STORE_INT(site), STORE_INT(count - seen->count),
					      STORE_CUT(item->time_ns)),
				 NULL);
	return r < 0 ? r : 0;
}

/* Counts what is new of one entry. 1: something is; 0 or -EIO. @site_id: where it was counted. */
static int store_record_entry(struct store_db *db, const struct store_item *item, int64_t process,
			      const struct store_record_site *site,
			      const struct store_repeat *entry, int64_t *ret_site_id)
{
	int64_t count = store_db_cut(entry->count);
	struct store_record_seen seen;
	int r = store_record_seen(db, process, site, entry, &seen);

	if (r < 0 || count <= seen.count)
		return r; /* nothing new has happened */
	/* What goes on stays where it was counted first. */
	*ret_site_id = seen.site;
	if (!seen.site)
		r = store_record_site(db, item, site, ret_site_id);
	if (r == 0)
		r = store_record_count(db, item, &seen, *ret_site_id, count);
	return r < 0 ? r : 1;
}

int store_record_incident(struct store_db *db, const struct store_item *item)
{
	const struct snapshot_incident *incident = &item->incident;
	char stem[STORE_STEM_SIZE];
	struct store_record_site site = store_record_site_of(item, stem);
	struct store_record_example example = {
		.time_ns = item->first_ns,
		.last_ns = item->time_ns,
		.device = incident->device,
		.device_uid = item->device_uid,
		.address = incident->has_address ? STORE_BITS(incident->address) : STORE_NONE,
		.size = incident->size,
		.largest_free = incident->largest_free != UINT64_MAX
					? STORE_CUT(incident->largest_free)
					: STORE_NONE,
		.count = incident->count,
		.space = incident->space,
		.size_per_bank = incident->size_per_bank,
		.banks = incident->banks,
		.bank_size = incident->bank_size,
		.bank_free = incident->bank_free,
		.explanation = item->explanation,
		.first = incident->first.known ? &item->first : NULL,
		.second = incident->second.known ? &item->second : NULL,
	};
	const struct store_repeat newest = store_item_repeat(item);
	int64_t id = 0;
	int r = store_record_process(db, item, 0, &example.process);

	for (size_t i = 0; r >= 0 && i < item->repeat_count; i++)
		r = store_record_entry(db, item, example.process, &site, &item->repeats[i],
				       &example.site);
	if (r >= 0)
		r = store_record_entry(db, item, example.process, &site, &newest, &example.site);
	if (r <= 0)
		return r;
	r = store_record_example(db, item, &example, &id);
	return r < 0 ? r : store_record_holders(db, item, id);
}

static int store_record_leak_site(struct store_db *db, const struct store_item *item, uint32_t at,
				  int64_t leak, int64_t *ret_site)
{
	const struct store_item_site *part = &item->sites[at];
	struct store_record_site site = {
		.kind = "leak",
		.type = part->type,
		.name = store_item_text(item, part->stack ? 0 : part->name),
		.phase = store_item_text(item, part->phase),
		.stack = store_item_text(item, part->stack),
		.count = 1,
		.bytes = part->bytes,
		.buffers = part->buffers,
		.first_ns = item->ending.ended_ns,
		.last_ns = item->ending.ended_ns,
	};
	int r = store_record_site(db, item, &site, ret_site);

	if (r == 0)
		r = store_db_run(db, STORE_SQL_LEAK_SITE_ADD,
				 STORE_VALUES(STORE_INT(leak), STORE_INT(*ret_site),
					      STORE_CUT(part->bytes), STORE_CUT(part->buffers),
					      STORE_CUT(part->oldest_ns),
					      STORE_TEXT(store_item_text(item, part->phases)),
					      STORE_TEXT(store_item_text(item, part->name)),
					      STORE_INT(part->name_count),
					      STORE_TEXT(store_item_text(item, part->names))),
				 NULL);
	return r < 0 ? r : 0;
}

/* A buffer of each site is the example of that site's leak. */
static int store_record_leak_example(struct store_db *db, const struct store_item *item,
				     uint32_t at, int64_t site, int64_t process)
{
	const struct store_item_buffer *row = &item->buffers[at];
	struct store_item_party born = {
		.name = row->name,
		.phase = row->phase,
		.stack = row->stack,
		.party = {.time_ns = row->buffer.born_ns,
			  .size = row->buffer.size,
			  .thread = row->buffer.thread},
	};
	struct store_record_example example = {
		.site = site,
		.process = process,
		.time_ns = item->ending.ended_ns,
		.last_ns = item->ending.ended_ns,
		.device = row->buffer.device,
		.device_uid = row->device_uid,
		.address = STORE_BITS(row->buffer.address),
		.size = row->buffer.size,
		.largest_free = STORE_NONE,
		.count = item->sites[row->site].buffers,
		.first = &born,
	};
	int64_t id;

	return store_record_example(db, item, &example, &id);
}

int store_record_chunk(struct store_db *db, int64_t leak, const struct store_chunk *chunk)
{
	int r = store_db_run(db, STORE_SQL_LEAK_CHUNK_ADD,
			     STORE_VALUES(STORE_INT(leak), STORE_INT(chunk->first),
					  STORE_INT(chunk->rows),
					  STORE_BYTES(chunk->bytes, chunk->length)),
			     NULL);

	return r < 0 ? r : 0;
}

static int store_record_leak_rows(struct store_db *db, const struct store_item *item, int64_t leak,
				  int64_t process)
{
	CLEANUP_FREE int64_t *sites = calloc(item->site_count + 1, sizeof(*sites));
	int r = 0;

	if (!sites)
		return store_db_fail(db, STORE_TROUBLE_AGAIN, "out of memory");
	for (uint32_t i = 0; r == 0 && i < item->site_count; i++)
		r = store_record_leak_site(db, item, i, leak, &sites[i]);
	for (uint32_t i = 0; r == 0 && i < item->buffer_count; i++)
		r = store_record_leak_example(db, item, i, sites[item->buffers[i].site], process);
	for (size_t i = 0; r == 0 && i < item->chunk_count; i++)
		r = store_record_chunk(db, leak, &item->chunks[i]);
	return r;
}

/* Identifies a book, whatever the process's name and the clock were when it was read. */
static int64_t store_record_identity(const struct store_db *db, const struct store_item *item)
{
	const struct store_item_process *process = &item->processes[0];
	const uint64_t parts[] = {(uint64_t)db->boot, process->id.pid, process->id.start_ticks,
				  item->ending.book};

	return (int64_t)(hash_bytes(parts, sizeof(parts)) & INT64_MAX);
}

int store_record_leak(struct store_db *db, const struct store_item *item)
{
	const struct ending *ending = &item->ending;
	int64_t process = 0, leak = 0, owner = 0;
	int r = store_record_process(db, item, 0, &process);

	if (r == 0)
		r = store_record_owner(db, item, &owner);
	if (r == 0)
		r = store_db_run(
			db, STORE_SQL_LEAK_ADD,
			STORE_VALUES(STORE_INT(process), STORE_INT(owner), STORE_BITS(ending->book),
				     STORE_CUT(ending->ended_ns),
				     STORE_INT(ending->closed | ending->execed << 1),
				     ending->has_status ? STORE_INT(WEXITSTATUS(ending->status))
							: STORE_NONE,
				     ending->has_status ? STORE_INT(WTERMSIG(ending->status))
							: STORE_NONE,
				     STORE_CUT(item->leaked_bytes), STORE_CUT(item->leaked_buffers),
				     STORE_INT(store_record_identity(db, item))),
			&leak);
	if (r <= 0)
		return r; /* failed, or reported before */
	return store_record_leak_rows(db, item, leak, process);
}

int store_record_ending(struct store_db *db, const struct store_item *item)
{
	const struct ending *ending = &item->ending;
	int64_t process = 0, owner = 0;
	int r = store_record_process(db, item, 0, &process);

	if (r == 0)
		r = store_record_owner(db, item, &owner);
	if (r == 0)
		r = store_db_run(
			db, STORE_SQL_ENDING_ADD,
			STORE_VALUES(STORE_INT(process), STORE_INT(owner),
				     STORE_CUT(ending->ended_ns),
				     STORE_INT(ending->closed | ending->execed << 1),
				     ending->has_status ? STORE_INT(WEXITSTATUS(ending->status))
							: STORE_NONE,
				     ending->has_status ? STORE_INT(WTERMSIG(ending->status))
							: STORE_NONE,
				     STORE_INT(store_record_identity(db, item))),
			NULL);
	return r < 0 ? r : 0;
}
