/* SPDX-License-Identifier: Apache-2.0 */

/* Owners: chained hash over one growing array of entries. */

#include "book/write/owners.h"

#include <string.h>

#include "base/hash.h"
#include "base/process/private.h"
#include "book/write/index.h"

#define OWNERS_BUCKETS 256u
#define OWNERS_FIRST 128u
#define OWNERS_MAX (1u << 20) /* beyond it buffers simply have no owner */

struct owners_entry {
	uint64_t owner;
	uint64_t birth; /* together with the slot this identifies the buffer, not a later one in
                         * the slot */
	uint32_t slot;
	uint32_t next; /* 1 + index, 0 = end */
};

struct owners {
	struct owners_entry *entries;
	uint32_t count;
	uint32_t capacity;
	uint32_t buckets[OWNERS_BUCKETS];
};

static uint32_t *owners_bucket(struct owners *owners, uint64_t owner)
{
	return &owners->buckets[hash_u64(owner) % OWNERS_BUCKETS];
}

static bool owners_is_live(const struct owners_entry *entry, const struct records *records)
{
	const struct book_record *record = records_at(records, entry->slot);

	return record->meta & BOOK_META_LIVE && record->birth == entry->birth;
}

static void owners_link(struct owners *owners, const struct owners_entry *entry)
{
	uint32_t *bucket = owners_bucket(owners, entry->owner);

	owners->entries[owners->count] = *entry;
	owners->entries[owners->count].next = *bucket;
	*bucket = ++owners->count;
}

/* Drops entries whose buffers have ended, into a larger array if more than half are still alive. */
static bool owners_sweep(struct owners *owners, const struct records *records)
{
	struct owners_entry *old = owners->entries;
	uint32_t old_count = owners->count;
	uint32_t old_capacity = owners->capacity;
	uint32_t capacity = old_capacity;
	uint32_t live = 0;
	struct owners_entry *entries;

	for (uint32_t i = 0; i < old_count; i++)
		live += owners_is_live(&old[i], records);
	if (live * 2 > capacity)
		capacity *= 2;
	if (capacity > OWNERS_MAX)
		return false;
	entries = private_map(capacity * sizeof(*entries));
	if (!entries)
		return false;
	owners->entries = entries;
	owners->capacity = capacity;
	owners->count = 0;
	memset(owners->buckets, 0, sizeof(owners->buckets));
	for (uint32_t i = 0; i < old_count; i++) {
		if (owners_is_live(&old[i], records))
			owners_link(owners, &old[i]);
	}
	private_unmap(old, old_capacity * sizeof(*old));
	return true;
}

static struct owners *owners_new(void)
{
	struct owners *owners = private_map(sizeof(*owners));

	if (!owners)
		return NULL;
	owners->entries = private_map(OWNERS_FIRST * sizeof(*owners->entries));
	if (!owners->entries) {
		private_unmap(owners, sizeof(*owners));
		return NULL;
	}
	owners->capacity = OWNERS_FIRST;
	return owners;
}

/* One more reference by the same owner: programs do this at every run, and one entry is enough. */
static bool owners_has(struct owners *owners, const struct owners_entry *wanted)
{
	for (uint32_t link = *owners_bucket(owners, wanted->owner); link;) {
		const struct owners_entry *entry = &owners->entries[link - 1];

		if (entry->owner == wanted->owner && entry->slot == wanted->slot &&
		    entry->birth == wanted->birth)
			return true;
		link = entry->next;
	}
	return false;
}

bool owners_add(struct owners **owners, const struct records *records, uint64_t owner,
		uint32_t slot)
{
	const struct book_record *record = records_at(records, slot);
	struct owners_entry entry = {.owner = owner, .birth = record->birth, .slot = slot};

	if (!*owners)
		*owners = owners_new();
	if (!*owners)
		return false;
	if (book_meta_refs(record->meta) > 1 && owners_has(*owners, &entry))
		return true;
	if ((*owners)->count == (*owners)->capacity && !owners_sweep(*owners, records))
		return false;
	owners_link(*owners, &entry);
	return true;
}

uint32_t owners_take(struct owners *owners, const struct records *records, uint64_t owner,
		     uint32_t type)
{
	uint32_t *link;

	if (!owners)
		return INDEX_NONE;
	link = owners_bucket(owners, owner);
	while (*link) {
		struct owners_entry *entry = &owners->entries[*link - 1];
		const struct book_record *record = records_at(records, entry->slot);

		if (entry->owner != owner) {
			link = &entry->next;
			continue;
		}
		if (!owners_is_live(entry, records)) {
			*link = entry->next; /* stays in the array, dead, until the next sweep */
			continue;
		}
		if (type != INDEX_ANY && book_meta_type(record->meta) != type) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		return entry->slot;
	}
	return INDEX_NONE;
}

void owners_free(struct owners *owners)
{
	if (!owners)
		return;
	private_unmap(owners->entries, owners->capacity * sizeof(*owners->entries));
	private_unmap(owners, sizeof(*owners));
}
