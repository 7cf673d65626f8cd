/* SPDX-License-Identifier: Apache-2.0 */

/* Writing incidents. */

#include "book/write/incident.h"

#include "base/bits.h"
#include "base/hash.h"
#include "base/process/private.h"
#include "book/write/shard.h"
#include "book/write/writer.h"

#define INCIDENT_PER_PAGE (BOOK_PAGE / sizeof(struct book_incident))

/* Private: the call site of each entry, used to find the entry of a repeat. */
struct incident_sites {
	uint64_t site[BOOK_INCIDENT_KINDS][BOOK_INCIDENTS_PER_KIND];
	uint32_t count[BOOK_INCIDENT_KINDS];
	uint32_t room[BOOK_INCIDENT_KINDS]; /* entries whose memory is reserved */
};

/*
 * Two incidents are the same if device, type and the stack of the call match. Without a stack the
 * name of the buffer is compared instead, and without a name its address.
 */
static uint64_t incident_site(const struct book_incident *incident)
{
	uint64_t where = hash_u64((uint64_t)incident->device << 32 | incident->type);

	if (incident->second.stack)
		where = hash_fold(where ^ incident->second.stack, HASH_K0);
	else if (incident->first.name)
		where = hash_fold(where ^ (uint64_t)incident->first.name << 32, HASH_K0);
	else
		where = hash_fold(where ^ incident->address ^ HASH_K1, HASH_K0);
	return where;
}

static struct book_incident *incident_at(struct writer *writer, uint32_t kind, uint32_t index)
{
	return (struct book_incident *)(void *)(writer->base + book_incident_offset(kind, index));
}

static void incident_repeat(struct writer *writer, uint32_t kind, uint32_t index, uint64_t time)
{
	struct book_incident *entry = incident_at(writer, kind, index);

	entry->last_time = time;
	/* The reader accepts any count it finds: it is a single word and never torn. */
	__atomic_store_n(&entry->count, entry->count + 1, __ATOMIC_RELAXED);
}

/* Entries come in pages, each reserved with its first entry. */
static bool incident_has_room(struct writer *writer, uint32_t kind, uint32_t index)
{
	struct incident_sites *sites = writer->incident_sites;

	if (index < sites->room[kind])
		return true;
	if (writer_grow(writer, book_incident_offset(kind, index), BOOK_PAGE) < 0)
		return false;
	sites->room[kind] = index + INCIDENT_PER_PAGE;
	return true;
}

/* A new entry: memory first, then content, then the word that makes it valid. */
static void incident_write(struct writer *writer, uint32_t kind, uint64_t site,
			   const struct book_incident *incident)
{
	struct incident_sites *sites = writer->incident_sites;
	uint32_t index = sites->count[kind];
	struct book_incident *entry;

	if (index >= BOOK_INCIDENTS_PER_KIND || !incident_has_room(writer, kind, index)) {
		writer_reject(&writer->header->incident_lost[kind]);
		return;
	}
	sites->site[kind][index] = site;
	sites->count[kind] = index + 1;
	entry = incident_at(writer, kind, index);
	*entry = *incident;
	entry->count = 1;
	entry->last_time = incident->second.time;
	__atomic_store_n(&entry->commit, 1, __ATOMIC_RELEASE); /* pairs with reader_incident() */
	__atomic_store_n(&writer->header->incident_count[kind], index + 1, __ATOMIC_RELEASE);
}

void incident_add(struct writer *writer, uint32_t kind, const struct book_incident *incident)
{
	uint64_t site = incident_site(incident);
	uint32_t count;

	if (!lock_take(&writer->incident_lock)) {
		writer_reject(&writer->header->incident_lost[kind]);
		return;
	}
	if (!writer->incident_sites)
		writer->incident_sites = private_map(sizeof(struct incident_sites));
	if (!writer->incident_sites) {
		writer_reject(&writer->header->incident_lost[kind]);
		lock_drop(&writer->incident_lock);
		return;
	}
	count = writer->incident_sites->count[kind];
	for (uint32_t i = 0; i < count; i++) {
		if (writer->incident_sites->site[kind][i] == site) {
			incident_repeat(writer, kind, i, incident->second.time);
			lock_drop(&writer->incident_lock);
			return;
		}
	}
	incident_write(writer, kind, site, incident);
	lock_drop(&writer->incident_lock);
}

void incident_trace_overlap(struct writer *writer, uint32_t device, const struct shard_buffer *who,
			    const struct book_party *traced)
{
	const struct book_incident incident = {
		.address = who->address,
		.size = who->size,
		.largest_free = UINT64_MAX,
		.device = device,
		.type = who->type,
		.space = who->space,
		.first = *traced,
		.second = {.time = writer_now(writer),
			   .size = who->size,
			   .thread = who->thread,
			   .phase = who->phase,
			   .stack = who->stack},
	};

	incident_add(writer, BOOK_INCIDENT_TRACE_OVERLAP, &incident);
}

bool incident_prepare(struct writer *writer)
{
	bool is_done = true;

	if (!lock_take(&writer->incident_lock))
		return false;
	if (!writer->incident_sites)
		writer->incident_sites = private_map(sizeof(struct incident_sites));
	for (uint32_t kind = 0; writer->incident_sites && kind <= BOOK_INCIDENT_TRACE_OVERLAP;
	     kind++) {
		uint32_t next = writer->incident_sites->count[kind];

		if (next < BOOK_INCIDENTS_PER_KIND && !incident_has_room(writer, kind, next))
			is_done = false;
	}
	is_done = is_done && writer->incident_sites;
	lock_drop(&writer->incident_lock);
	return is_done;
}

void incident_free_sites(struct incident_sites *sites)
{
	private_unmap(sites, sizeof(*sites));
}
