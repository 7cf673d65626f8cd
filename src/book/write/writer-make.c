/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Creating a book, its pool, and what changes rarely: devices, marks, the fields of the header. The
 * magic is stored last, so a book that is still being created is not accepted as one.
 */

#include "book/write/writer.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "book/write/room.h"

int writer_charge(struct writer *writer, uint64_t bytes)
{
	uint64_t left = __atomic_load_n(&writer->room_left, __ATOMIC_RELAXED);

	do {
		if (left < bytes)
			return -ENOSPC;
	} while (!__atomic_compare_exchange_n(&writer->room_left, &left, left - bytes, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return 0;
}

void writer_refund(struct writer *writer, uint64_t bytes)
{
	__atomic_fetch_add(&writer->room_left, bytes, __ATOMIC_RELAXED);
}

int writer_reserve(struct writer *writer, uint64_t offset, uint64_t length)
{
	int r = writer->reserve(writer->context, offset, length);

	if (r == 0)
		__atomic_fetch_add(&writer->header->reserved_bytes, length, __ATOMIC_RELAXED);
	return r;
}

int writer_grow(struct writer *writer, uint64_t offset, uint64_t length)
{
	int r = writer_charge(writer, length);

	if (r < 0)
		return r;
	r = writer_reserve(writer, offset, length);
	if (r < 0)
		writer_refund(writer, length);
	return r;
}

/* A page below the pool that several users share; each of them asks for it. */
static int writer_reserve_page(struct writer *writer, uint64_t offset)
{
	uint64_t page = offset / BOOK_PAGE;
	uint64_t bit = UINT64_C(1) << page % 64;
	int r;

	if (__atomic_load_n(&writer->pages[page / 64], __ATOMIC_RELAXED) & bit)
		return 0;
	r = writer_reserve(writer, page * BOOK_PAGE, BOOK_PAGE);
	if (r == 0)
		__atomic_fetch_or(&writer->pages[page / 64], bit, __ATOMIC_RELAXED);
	return r;
}

uint32_t writer_claim(struct writer *writer, uint32_t units, uint16_t owner, uint8_t kind)
{
	struct book_segment segment = {.owner = owner, .kind = kind, .units = units};
	uint64_t unit = __atomic_load_n(&writer->header->pool_next, __ATOMIC_RELAXED);
	uint64_t entry;

	/* Never beyond the end: giving a unit back could hand it out twice. */
	do {
		if ((unit + units) * BOOK_UNIT > writer->size)
			return 0;
	} while (!__atomic_compare_exchange_n(&writer->header->pool_next, &unit, unit + units, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	entry = BOOK_SEGMENTS_OFFSET + unit * sizeof(struct book_segment);
	/*
	 * The first page of the table was reserved with the book; it covers the first 32 MiB of the
	 * file.
	 */
	if (entry >= BOOK_SEGMENTS_OFFSET + BOOK_PAGE && writer_reserve_page(writer, entry) < 0)
		return 0;
	memcpy(writer->base + entry, &segment, sizeof(segment));
	return (uint32_t)unit;
}

static void writer_write_identity(struct book_header *header,
				  const struct writer_identity *identity)
{
	size_t length = bits_min(identity->cmdline_length, sizeof(header->cmdline));

	header->source = identity->source;
	header->pid = identity->pid;
	header->keeper = identity->keeper;
	header->uid = identity->uid;
	header->euid = identity->euid;
	header->start_ticks = identity->start_ticks;
	header->boottime_offset = identity->boottime_offset;
	header->monotonic_offset = identity->monotonic_offset;
	header->pid_namespace = identity->pid_namespace;
	header->unlisted = identity->is_unlisted;
	memcpy(header->boot_id, identity->boot_id, sizeof(header->boot_id));
	memcpy(header->comm, identity->comm, sizeof(header->comm));
	if (identity->library)
		strncpy(header->library, identity->library, sizeof(header->library) - 1);
	if (identity->cmdline) {
		memcpy(header->cmdline, identity->cmdline, length);
		header->cmdline_length = (uint32_t)length;
	}
}

static void writer_write_header(struct writer *writer, const struct writer_config *config)
{
	struct book_header *header = writer->header;
	bool is_coarse = config->clock == BOOK_CLOCK_COARSE;

	header->version = BOOK_VERSION;
	header->header_size = sizeof(*header);
	header->file_size = config->size;
	header->room = config->room;
	header->ring_events = config->ring_events;
	header->record_size = sizeof(struct book_record);
	header->event_size = sizeof(struct book_event);
	header->shard_size = sizeof(struct book_shard);
	header->clock = is_coarse ? BOOK_CLOCK_MONOTONIC : config->clock;
	header->clock_start = book_clock_read(config->clock);
	header->monotonic_start = clock_ns(is_coarse ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC);
	header->realtime_start = clock_ns(is_coarse ? CLOCK_REALTIME_COARSE : CLOCK_REALTIME);
	header->pool_next = BOOK_POOL_FIRST_UNIT;
	header->state = BOOK_STATE_OPEN;
	writer_write_identity(header, config->identity);
}

static bool writer_config_is_sane(const struct writer_config *config)
{
	uint32_t ring = config->ring_events;

	return config->base && config->size >= BOOK_SIZE_MIN && config->size <= BOOK_SIZE_MAX &&
	       config->size % BOOK_UNIT == 0 && ring >= BOOK_RING_MIN && ring <= BOOK_RING_MAX &&
	       (ring & (ring - 1)) == 0 && config->reserve && config->identity;
}

/* Header and arenas, and the first page of the segment table. */
int writer_reserve_first(int (*reserve)(void *context, uint64_t offset, uint64_t length),
			 void *context)
{
	int r = reserve(context, 0, 2 * BOOK_PAGE);

	return r < 0 ? r : reserve(context, BOOK_SEGMENTS_OFFSET, BOOK_PAGE);
}

int writer_new(struct writer **ret_writer, const struct writer_config *config)
{
	struct writer *writer;
	int r;

	if (!writer_config_is_sane(config))
		return -EINVAL;
	r = writer_reserve_first(config->reserve, config->context);
	if (r < 0)
		return r;
	writer = room_make_writer();
	if (!writer)
		return -ENOMEM;
	writer->base = config->base;
	writer->header = config->base;
	writer->size = config->size;
	writer->clock = config->clock;
	writer->ring_events = config->ring_events;
	writer->home = config->identity->keeper ? 0 : config->identity->pid;
	writer->reserve = config->reserve;
	writer->context = config->context;
	writer->room_left = config->room;
	writer->rings_left =
		room_for_rings(bits_min(config->room, config->size - BOOK_POOL_OFFSET));
	writer_write_header(writer, config);
	writer->header->reserved_bytes = 3 * BOOK_PAGE;
	intern_init(&writer->intern, writer);
	/* Pairs with reader_init(), which checks it before anything else. */
	__atomic_store_n(&writer->header->magic, BOOK_MAGIC, __ATOMIC_RELEASE);
	*ret_writer = writer;
	return 0;
}

static void writer_copy_text(char *to, size_t size, const char *from)
{
	size_t length = from ? strnlen(from, size - 1) : 0;

	memset(to, 0, size);
	bits_copy(to, from, length);
}

static struct book_device *writer_device_entry(struct writer *writer, uint32_t device)
{
	uint64_t offset = book_device_offset(device);

	if (writer_reserve_page(writer, offset) < 0)
		return NULL;
	return (struct book_device *)(void *)(writer->base + offset);
}

bool writer_is_declared(const struct writer *writer, uint32_t device)
{
	uint64_t offset = book_device_offset(device);
	uint64_t page = offset / BOOK_PAGE;
	const struct book_device *entry;

	if (!(__atomic_load_n(&writer->pages[page / 64], __ATOMIC_RELAXED) >> page % 64 & 1))
		return false;
	entry = (const struct book_device *)(const void *)(writer->base + offset);
	return __atomic_load_n(&entry->generation, __ATOMIC_RELAXED) != 0;
}

uint32_t writer_banks(const struct writer *writer, uint32_t device, uint32_t type)
{
	const struct book_device *entry;

	if (device >= BOOK_DEVICES || !writer_is_declared(writer, device))
		return 0;
	entry = (const struct book_device *)(const void *)(writer->base +
							   book_device_offset(device));
	return __atomic_load_n(&entry->memory[type].banks, __ATOMIC_RELAXED);
}

void writer_declare(struct writer *writer, uint32_t device, const struct writer_device *facts)
{
	struct book_device *entry;
	uint32_t generation;

	if (!lock_take(&writer->making))
		return;
	entry = writer_device_entry(writer, device);
	if (entry) {
		/* Odd while the entry is being rewritten; a reader tries again. */
		generation = (entry->generation | 1) + 2;
		__atomic_store_n(&entry->generation, generation, __ATOMIC_RELAXED);
		/* Pairs with the second read of it in reader_device(). */
		bits_store_barrier();
		entry->remote = facts->remote;
		entry->unique_id = facts->unique_id;
		writer_copy_text(entry->arch, sizeof(entry->arch), facts->arch);
		writer_copy_text(entry->card, sizeof(entry->card), facts->card);
		entry->l1_per_core = facts->l1_per_core;
		entry->cores = facts->cores;
		entry->closed_time = 0;
		memcpy(entry->memory, facts->memory, sizeof(entry->memory));
		/* Pairs with the first. */
		__atomic_store_n(&entry->generation, generation + 1, __ATOMIC_RELEASE);
		writer_changed(writer);
	}
	lock_drop(&writer->making);
}

void writer_close_device(struct writer *writer, uint32_t device)
{
	struct book_device *entry;

	if (!lock_take(&writer->making))
		return;
	entry = writer_device_entry(writer, device);
	if (entry) {
		entry->closed_time = writer_now(writer);
		writer_changed(writer);
	}
	lock_drop(&writer->making);
}

int writer_reserve_marks(struct writer *writer)
{
	int r = 0;

	for (uint64_t at = 0; r == 0 && at < BOOK_MARKS * sizeof(struct book_mark); at += BOOK_PAGE)
		r = writer_reserve_page(writer, BOOK_MARKS_OFFSET + at);
	return r;
}

void writer_mark(struct writer *writer, uint32_t name, uint32_t thread, uint32_t phase)
{
	struct book_mark *mark;
	uint64_t number;

	if (!lock_take(&writer->making))
		return;
	number = writer->header->mark_count;
	if (writer_reserve_marks(writer) < 0) {
		lock_drop(&writer->making);
		return;
	}
	mark = (struct book_mark *)(void *)(writer->base + BOOK_MARKS_OFFSET) + number % BOOK_MARKS;
	__atomic_store_n(&mark->commit, 0, __ATOMIC_RELAXED);
	/* Pairs with the second read of it in reader_mark(). */
	bits_store_barrier();
	mark->time = writer_now(writer);
	mark->name = name;
	mark->thread = thread;
	mark->phase = phase;
	/* Pairs with the first. */
	__atomic_store_n(&mark->commit, number + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&writer->header->mark_count, number + 1, __ATOMIC_RELEASE);
	lock_drop(&writer->making);
}

void writer_set_paused(struct writer *writer, bool paused)
{
	__atomic_store_n(&writer->header->paused, paused, __ATOMIC_RELAXED);
}

void writer_stop_clock(struct writer *writer)
{
	writer->stopped_time = writer_now(writer);
	/* Pairs with writer_now(). */
	__atomic_store_n(&writer->clock, BOOK_CLOCK_STOPPED, __ATOMIC_RELEASE);
}

void writer_goodbye(struct writer *writer)
{
	writer->header->closed_time = writer_now(writer);
	__atomic_store_n(&writer->header->state, BOOK_STATE_CLOSED, __ATOMIC_RELEASE);
}
