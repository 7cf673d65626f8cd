/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The writer's life cycle and its events. An event hashes the address, prefetches the index line,
 * reads the clock while that line is on its way, and only then takes the shard's lock: rdtsc waits
 * for older loads, so after the lookup it would cost a whole cache miss.
 */

#include "book/write/writer.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/incident.h"
#include "book/write/owners.h"
#include "book/write/room.h"

/* See hot.c. Functions for rare events are marked as not to be merged. */
#define WRITER_MERGED __attribute__((flatten))

void writer_reject(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline struct shard *writer_shard(struct writer *writer, uint32_t device)
{
	/* Pairs with the release in shard_get_slow(). */
	struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	if (likely(shard))
		return shard;
	shard = shard_get_slow(writer, device);
	if (!shard)
		writer_reject(&writer->header->rejected.room);
	return shard;
}

void writer_lost(struct writer *writer, uint32_t device, bool is_free, uint32_t type)
{
	uint64_t which = is_free ? BOOK_INEXACT_HIGH : BOOK_INEXACT_LOW;
	struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	if (!shard) {
		uint64_t types = type == INDEX_ANY ? (1u << BOOK_TYPES) - 1 : 1u << type;

		__atomic_fetch_or(&writer->lost[device], (uint16_t)(which * types),
				  __ATOMIC_SEQ_CST);
		/* It may exist by now: either we see it, or shard_get_slow() sees our mark. */
		shard = __atomic_load_n(&writer->shards[device], __ATOMIC_SEQ_CST);
	}
	if (shard)
		shard_mark_inexact(shard, which, type);
}

static __attribute__((noinline)) void writer_incident(struct shard *shard, int outcome,
						      uint64_t time, const struct shard_buffer *who,
						      const struct shard_past *past)
{
	struct writer *writer = shard->writer;
	struct book_incident incident = {
		.address = who->address,
		.device = shard->device,
		.type = who->type,
		.space = who->space,
		.largest_free = UINT64_MAX,
		.second = {.time = time,
			   .thread = who->thread,
			   .name = who->name,
			   .phase = who->phase,
			   .stack = who->stack},
	};
	const struct book_grave *grave = &past->grave;

	if (outcome == SHARD_UNKNOWN_FREE) {
		incident_add(writer, BOOK_INCIDENT_UNKNOWN_FREE, &incident);
		return;
	}
	incident.type = book_meta_type(grave->meta);
	incident.space = book_space(grave->birth_thread_space);
	incident.first = (struct book_party){
		.time = grave->death,
		.size = grave->size,
		.thread = grave->death_thread,
		.name = grave->name,
		.phase = grave->death_phase,
		.stack = grave->death_stack,
	};
	incident.size = grave->size;
	if (outcome == SHARD_DOUBLE_FREE) {
		incident.second.size = grave->size;
		incident_add(writer, BOOK_INCIDENT_DOUBLE_FREE, &incident);
		return;
	}
	/* A size change: the first party is whoever allocated the buffer that was still there. */
	incident.first.time = grave->birth;
	incident.first.thread = book_thread(grave->birth_thread_space);
	incident.first.phase = grave->phase;
	incident.first.stack = grave->birth_stack;
	incident.second.size = who->size;
	incident.size = who->size;
	incident_add(writer, BOOK_INCIDENT_SIZE_CHANGE, &incident);
}

/* What every event does once its outcome is known; the lock is no longer held. */
static inline void writer_settle(struct shard *shard, int outcome, uint64_t time,
				 const struct shard_buffer *who, const struct shard_past *past,
				 bool is_free)
{
	if (likely(outcome == SHARD_DONE))
		return;
	if (outcome == SHARD_UNRECORDED) {
		writer_reject(&shard->writer->header->rejected.room);
		writer_lost(shard->writer, shard->device, is_free, who->type);
		return;
	}
	writer_incident(shard, outcome, time, who, past);
}

/* @now: @time was read just now; otherwise the buffer was born then, and keeps its birth. */
static inline void writer_alloc_at(struct shard *shard, struct index_place place, uint64_t time,
				   bool now, const struct shard_buffer *buffer, uint64_t owner)
{
	struct index_bucket *bucket;
	struct shard_past past;
	int outcome;

	if (unlikely(!shard_take(shard, &buffer->thread))) {
		writer_reject(&shard->writer->header->rejected.lock);
		writer_lost(shard->writer, shard->device, false, buffer->type);
		return;
	}
	bucket = index_settle(&shard->index, place);
	if (now)
		time = shard_birth(shard, time);
	outcome = shard_alloc(shard, bucket, place.hash, time, buffer, &past);
	if (unlikely(owner)) {
		uint32_t slot = index_find(
			&shard->index, &shard->records, place.hash,
			(struct index_key){buffer->address, buffer->type, buffer->space});

		/* If out of memory, the buffer has no owner: free_all() will not find it. */
		if (slot != INDEX_NONE)
			(void)owners_add(&shard->owners, &shard->records, owner, slot);
	}
	lock_drop(&shard->lock);
	writer_settle(shard, outcome, time, buffer, &past, false);
}

WRITER_MERGED void writer_alloc(struct writer *writer, uint32_t device,
				const struct shard_buffer *buffer, uint64_t owner)
{
	struct shard *shard = writer_shard(writer, device);
	struct index_place place;

	if (unlikely(!shard)) {
		writer_lost(writer, device, false, buffer->type);
		return;
	}
	place = index_look(&shard->index, index_hash(buffer->address, buffer->space));
	writer_alloc_at(shard, place, writer_now(writer), true, buffer, owner);
}

void writer_alloc_born(struct writer *writer, uint32_t device, const struct shard_buffer *buffer,
		       uint64_t time)
{
	struct shard *shard = writer_shard(writer, device);
	uint64_t hash = index_hash(buffer->address, buffer->space);

	if (shard)
		writer_alloc_at(shard, index_look(&shard->index, hash), time, false, buffer, 0);
	else
		writer_lost(writer, device, false, buffer->type);
}

static inline void writer_free_at(struct writer *writer, struct shard *shard,
				  struct index_place place, uint64_t time,
				  const struct shard_buffer *who)
{
	struct index_bucket *bucket;
	struct shard_past past;
	int outcome;

	if (unlikely(!shard_take(shard, &who->thread))) {
		writer_reject(&writer->header->rejected.lock);
		writer_lost(writer, shard->device, true, who->type);
		return;
	}
	bucket = index_settle(&shard->index, place);
	time = shard_after_births(shard, time);
	outcome = shard_free(shard, bucket, place.hash, time, who, &past);
	lock_drop(&shard->lock);
	writer_settle(shard, outcome, time, who, &past, true);
}

WRITER_MERGED void writer_free_buffer(struct writer *writer, uint32_t device,
				      const struct shard_buffer *who)
{
	struct shard *shard = writer_shard(writer, device);
	struct index_place place;

	if (unlikely(!shard))
		return;
	place = index_look(&shard->index, index_hash(who->address, who->space));
	writer_free_at(writer, shard, place, writer_now(writer), who);
}

/*
 * A mesh call is the same event on each device at one time; the devices' cache lines are prefetched
 * a few devices ahead. Devices out of range are counted and skipped.
 */
#define WRITER_MESH_AHEAD 2u

static inline void writer_mesh_prefetch(struct writer *writer, const uint32_t *devices, size_t n,
					size_t i, uint64_t hash)
{
	struct shard *ahead;

	if (i + WRITER_MESH_AHEAD >= n || devices[i + WRITER_MESH_AHEAD] >= BOOK_DEVICES)
		return;
	ahead = __atomic_load_n(&writer->shards[devices[i + WRITER_MESH_AHEAD]], __ATOMIC_ACQUIRE);
	if (ahead)
		(void)index_look(&ahead->index, hash); /* prefetches the line */
}

WRITER_MERGED void writer_alloc_mesh(struct writer *writer, const uint32_t *devices, size_t n,
				     const struct shard_buffer *buffer, uint64_t owner)
{
	uint64_t hash = index_hash(buffer->address, buffer->space);
	uint64_t time = writer_now(writer);

	for (size_t i = 0; i < n; i++) {
		struct shard *shard;

		if (unlikely(devices[i] >= BOOK_DEVICES)) {
			writer_reject(&writer->header->rejected.device);
			continue;
		}
		writer_mesh_prefetch(writer, devices, n, i, hash);
		shard = writer_shard(writer, devices[i]);
		if (likely(shard))
			writer_alloc_at(shard, index_look(&shard->index, hash), time, true, buffer,
					owner);
		else
			writer_lost(writer, devices[i], false, buffer->type);
	}
}

WRITER_MERGED void writer_free_mesh(struct writer *writer, const uint32_t *devices, size_t n,
				    const struct shard_buffer *who)
{
	uint64_t hash = index_hash(who->address, who->space);
	uint64_t time = writer_now(writer);

	for (size_t i = 0; i < n; i++) {
		struct shard *shard;

		if (unlikely(devices[i] >= BOOK_DEVICES)) {
			writer_reject(&writer->header->rejected.device);
			continue;
		}
		writer_mesh_prefetch(writer, devices, n, i, hash);
		shard = writer_shard(writer, devices[i]);
		if (likely(shard))
			writer_free_at(writer, shard, index_look(&shard->index, hash), time, who);
	}
}

/* Slots that writer_end_all() scans before it lets other threads in. */
#define WRITER_BITE 4096u

/* Which buffers of a device writer_end_all() ends. */
struct writer_meant {
	uint64_t owner; /* 0 = any */
	uint32_t type;  /* or INDEX_ANY */
	uint32_t space; /* or INDEX_ANY */
	uint32_t op;
};

/* The next slot to end: of one owner, or any live one from @from up to @end. */
static uint32_t writer_next_to_end(struct shard *shard, const struct writer_meant *meant,
				   uint32_t *from, uint32_t end)
{
	if (meant->owner)
		return owners_take(shard->owners, &shard->records, meant->owner, meant->type);
	for (; *from < end; ++*from) {
		const struct book_record *record = records_at(&shard->records, *from);
		struct index_key key = index_key_of(record);

		if (record->meta & BOOK_META_LIVE &&
		    (meant->type == INDEX_ANY || key.type == meant->type) &&
		    (meant->space == INDEX_ANY || key.space == meant->space))
			return *from;
	}
	return INDEX_NONE;
}

/* Return: how many have ended. */
static uint64_t writer_end_all(struct shard *shard, const struct writer_meant *meant,
			       const struct shard_buffer *who)
{
	struct writer *writer = shard->writer;
	uint64_t ended = 0;
	bool more = true;
	uint32_t from = 0;

	/* In small batches, so that other threads' events get in between. */
	while (more) {
		uint32_t end;

		if (!shard_take(shard, &who->thread)) {
			writer_reject(&writer->header->rejected.lock);
			writer_lost(writer, shard->device, true, meant->type);
			return ended;
		}
		end = (uint32_t)bits_min(shard->slots, (uint64_t)from + WRITER_BITE);
		for (int i = 0; i < 64; i++) {
			uint32_t slot = writer_next_to_end(shard, meant, &from, end);
			uint64_t time;

			if (slot == INDEX_NONE) {
				more = !meant->owner && end < shard->slots;
				break;
			}
			time = shard_after_births(shard, writer_now(writer));
			if (shard_end(shard, slot, meant->op, time, who) != SHARD_DONE) {
				shard_mark_inexact(shard, BOOK_INEXACT_HIGH, meant->type);
				more = false;
				break;
			}
			ended++;
		}
		lock_drop(&shard->lock);
	}
	return ended;
}

void writer_free_all(struct writer *writer, uint32_t device, uint64_t owner,
		     const struct shard_buffer *who)
{
	struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	if (shard)
		writer_end_all(shard,
			       &(struct writer_meant){.owner = owner,
						      .type = who->type,
						      .space = INDEX_ANY,
						      .op = BOOK_OP_FREE},
			       who);
}

uint64_t writer_end_space(struct writer *writer, uint32_t device, const struct shard_buffer *who)
{
	struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	if (!shard || who->space > __atomic_load_n(&shard->space_last, __ATOMIC_RELAXED))
		return 0;
	return writer_end_all(shard,
			      &(struct writer_meant){.type = INDEX_ANY,
						     .space = who->space,
						     .op = BOOK_OP_FREE | BOOK_OP_CLOSED},
			      who);
}

/* An event that only counts. */
static void writer_note(struct writer *writer, uint32_t device, uint32_t op, uint64_t time,
			const struct shard_buffer *buffer)
{
	struct shard *shard = writer_shard(writer, device);
	int outcome;

	if (!shard)
		return;
	if (!shard_take(shard, &buffer->thread)) {
		writer_reject(&writer->header->rejected.lock);
		return;
	}
	outcome = shard_note(shard, op, shard_after_births(shard, time), buffer);
	lock_drop(&shard->lock);
	if (outcome != SHARD_DONE)
		writer_reject(&writer->header->rejected.room);
}

void writer_hooked(struct writer *writer, uint32_t device, const struct shard_buffer *buffer)
{
	writer_note(writer, device, BOOK_OP_HOOKED, writer_now(writer), buffer);
}

void writer_failed(struct writer *writer, uint32_t device, const struct shard_buffer *buffer,
		   const struct writer_lack *lack)
{
	uint64_t time = writer_now(writer);
	struct book_incident incident = {
		.size = buffer->size,
		.largest_free = lack->largest_free,
		.device = device,
		.type = buffer->type,
		.space = buffer->space,
		.second = {.time = time,
			   .size = buffer->size,
			   .thread = buffer->thread,
			   .name = buffer->name,
			   .phase = buffer->phase,
			   .stack = buffer->stack},
		.size_per_bank = lack->size_per_bank,
		.bank_size = lack->bank_size,
		.bank_free = lack->bank_free,
		.banks = lack->banks,
		.shape_flags = lack->shape_flags,
	};

	writer_note(writer, device, BOOK_OP_FAILED, time, buffer);
	incident_add(writer, BOOK_INCIDENT_ALLOC_FAILED, &incident);
}

/* Whoever allocated the buffer; all 0 if it is not there. */
static struct book_party writer_owner_of(struct shard *shard, const struct shard_buffer *who)
{
	uint64_t hash = index_hash(who->address, who->space);
	struct book_party party = {0};
	uint32_t slot;

	if (!shard || !shard_take(shard, &who->thread))
		return party;
	slot = index_find(&shard->index, &shard->records, hash,
			  (struct index_key){who->address, who->type, who->space});
	if (slot != INDEX_NONE) {
		const struct book_record *record = records_at(&shard->records, slot);

		party = (struct book_party){
			.time = record->birth,
			.size = record->size,
			.thread = book_thread(record->thread_space),
			.name = record->name,
			.phase = record->phase,
			.stack = record->stack,
		};
	}
	lock_drop(&shard->lock);
	return party;
}

void writer_clash(struct writer *writer, uint32_t device, const struct shard_buffer *who,
		  uint64_t end)
{
	struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);
	struct book_incident incident = {
		.address = who->address,
		.size = end - who->address,
		.largest_free = UINT64_MAX,
		.device = device,
		.type = who->type,
		.space = who->space,
		.first = writer_owner_of(shard, who),
		.second = {.time = writer_now(writer),
			   .size = who->size,
			   .thread = who->thread,
			   .name = who->name,
			   .phase = who->phase,
			   .stack = who->stack},
	};

	incident_add(writer, BOOK_INCIDENT_CLASH, &incident);
}

void writer_reset_peak(struct writer *writer, uint32_t device, uint32_t type, uint32_t thread)
{
	struct shard_buffer buffer = {.thread = thread};

	if (!__atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE))
		return;
	for (uint32_t t = 0; t < BOOK_TYPES; t++) {
		if (type != INDEX_ANY && type != t)
			continue;
		buffer.type = t;
		writer_note(writer, device, BOOK_OP_PEAK_RESET, writer_now(writer), &buffer);
	}
}

bool writer_counters(struct writer *writer, uint32_t device, uint32_t type, uint32_t thread,
		     struct book_hot *ret_hot)
{
	struct shard *shard = __atomic_load_n(&writer->shards[device], __ATOMIC_ACQUIRE);

	if (!shard || !shard_take(shard, &thread))
		return false;
	*ret_hot = shard->hot[type];
	lock_drop(&shard->lock);
	return true;
}

struct writer *writer_free(struct writer *writer)
{
	if (!writer)
		return NULL;
	if (writer->incident_sites)
		incident_free_sites(writer->incident_sites);
	intern_deinit(&writer->intern);
	room_free(writer);
	return NULL;
}
