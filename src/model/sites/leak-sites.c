/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One pass over the buffers, of which there may be millions. A snapshot holds each text only once,
 * and most buffers have one of a few stacks: those whose row is known are found by pointer.
 */

#include "model/sites/leak-sites.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/quota.h"
#include "model/merge.h"
#include "model/sites/name-stem.h"
#include "model/sites/site.h"
#include "model/snapshot.h"

#define LEAK_SITES_KNOWN 256u

struct leak_sites_known {
	const struct stack *stack;
	const char *name, *phase;
	uint32_t type;
	struct leak_site *row; /* NULL = nothing is known */
};

const char *leak_sites_text(const struct snapshot_buffer *buffer, char *ret_text, size_t size)
{
	if (buffer->stack)
		return site_text(buffer->stack, ret_text, size);
	if (buffer->name)
		return name_stem(buffer->name, ret_text, size);
	(void)snprintf(ret_text, size, "%s%s", buffer->phase ? "in " : "",
		       buffer->phase ? buffer->phase : ""); /* cut if too long */
	return ret_text;
}

static struct leak_site *leak_sites_other(struct leak_sites *sites, uint32_t type)
{
	struct leak_site *row = &sites->others[type];

	strcpy(row->site, LEAK_SITES_OTHER);
	row->type = type;
	return row;
}

static bool leak_sites_has_room(const struct leak_sites *sites, uint32_t user)
{
	size_t own = 0;

	for (size_t i = 0; i < sites->count; i++)
		own += sites->rows[i].user == user;
	return quota_rest(LEAK_SITES_MAX, sites->count, own) > 0;
}

/* The row with the labels of @wanted; a new one, if @has_room. */
static struct leak_site *leak_sites_row(struct leak_sites *sites, const struct leak_site *wanted,
					bool has_room)
{
	for (size_t i = 0; i < sites->count; i++) {
		if (sites->rows[i].type == wanted->type &&
		    strcmp(sites->rows[i].site, wanted->site) == 0)
			return &sites->rows[i];
	}
	/* A site may be called like the others, and labels must differ. */
	if (!has_room || sites->count == LEAK_SITES_MAX ||
	    strcmp(wanted->site, LEAK_SITES_OTHER) == 0)
		return leak_sites_other(sites, wanted->type);
	sites->rows[sites->count] = *wanted;
	sites->rows[sites->count].bytes = sites->rows[sites->count].buffers = 0;
	return &sites->rows[sites->count++];
}

static struct leak_site *leak_sites_row_of(struct leak_sites *sites,
					   const struct snapshot_buffer *buffer, uint32_t user)
{
	struct leak_site row = {.type = buffer->type, .user = user};

	(void)leak_sites_text(buffer, row.site, sizeof(row.site));
	return leak_sites_row(sites, &row, true);
}

static void leak_sites_count(struct leak_site *row, uint64_t bytes, uint64_t buffers)
{
	row->bytes = merge_add(row->bytes, bytes);
	row->buffers = merge_add(row->buffers, buffers);
}

void leak_sites_merge(struct leak_sites *to, const struct leak_sites *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct leak_site *row = &from->rows[i];

		leak_sites_count(leak_sites_row(to, row, leak_sites_has_room(to, row->user)),
				 row->bytes, row->buffers);
	}
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct leak_site *row = &from->others[type];

		if (*row->site)
			leak_sites_count(leak_sites_other(to, type), row->bytes, row->buffers);
	}
}

static struct leak_site *leak_sites_find(struct leak_sites *sites, struct leak_sites_known *all,
					 const struct snapshot_buffer *buffer, uint32_t user)
{
	uint64_t hash = hash_fold((uintptr_t)buffer->stack ^ HASH_K0,
				  (uintptr_t)buffer->name ^ buffer->type ^ HASH_K1) ^
			hash_u64((uintptr_t)buffer->phase);
	struct leak_sites_known *known = &all[hash % LEAK_SITES_KNOWN];

	if (!known->row || known->stack != buffer->stack || known->name != buffer->name ||
	    known->phase != buffer->phase || known->type != buffer->type)
		*known = (struct leak_sites_known){
			.stack = buffer->stack,
			.name = buffer->name,
			.phase = buffer->phase,
			.type = buffer->type,
			.row = leak_sites_row_of(sites, buffer, user),
		};
	return known->row;
}

/* If there are very many buffers, or none are known, the counters have more than the list. */
static void leak_sites_add_rest(struct leak_sites *sites, const struct snapshot_process *process,
				const struct leak_site listed[BOOK_TYPES])
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		uint64_t bytes = 0, buffers = 0;

		for (size_t i = 0; i < process->part_count; i++) {
			bytes = merge_add(bytes, process->parts[i].memory[type].used);
			buffers = merge_add(buffers, process->parts[i].memory[type].buffers);
		}
		if (bytes <= listed[type].bytes)
			continue;
		leak_sites_count(leak_sites_other(sites, type), bytes - listed[type].bytes,
				 buffers - bits_min(buffers, listed[type].buffers));
	}
}

void leak_sites_add(struct leak_sites *sites, const struct snapshot *snapshot, uint32_t process)
{
	const struct snapshot_process *who = &snapshot->processes[process];
	struct leak_sites_known known[LEAK_SITES_KNOWN] = {0};
	struct leak_site listed[BOOK_TYPES] = {0};

	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		uint64_t bytes = snapshot_buffer_bytes(buffer);

		if (buffer->process != process || buffer->type >= BOOK_TYPES)
			continue;
		leak_sites_count(leak_sites_find(sites, known, buffer, who->user_id), bytes, 1);
		leak_sites_count(&listed[buffer->type], bytes, 1);
	}
	leak_sites_add_rest(sites, who, listed);
}
