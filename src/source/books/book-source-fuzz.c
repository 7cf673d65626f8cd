/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Snapshots, histories and followers over hostile books. The input is a list of patches to a small
 * good book, some applied only after a number of reads, as a live owner would. Whatever they
 * contain, all documents can be written and nothing crashes or hangs.
 *
 * A patch: region (1 byte), offset in it (2), reads before it is applied (1), length (1), bytes.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/buffers.h"
#include "answers/document.h"
#include "answers/growth.h"
#include "answers/history.h"
#include "answers/incidents.h"
#include "answers/peak.h"
#include "base/bits.h"
#include "base/emit.h"
#include "base/pool.h"
#include "base/testing/unit.h"
#include "book/read/view.h"
#include "book/testing/testing-memory.h"
#include "model/filter.h"
#include "model/history.h"
#include "model/sites/growth.h"
#include "model/sites/namer.h"
#include "model/snapshot-peak.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/address-history.h"
#include "source/books/book-kept.h"
#include "source/books/book-rest.h"
#include "source/books/book-source.h"
#include "source/books/follow.h"
#include "source/books/scan.h"
#include "source/books/stacks.h"

/* Totals only, with a cache: before and after the patches that come between two reads. */
static void fuzz_totals(struct scan_book *book, struct view *view)
{
	for (int i = 0; i < 3; i++) {
		const struct snapshot_request request = {0};
		struct snapshot *snapshot = snapshot_new(1);

		assert(snapshot && book_collect(book, &request, view, snapshot) == 0);
		assert(snapshot_finish(snapshot) == 0);
		snapshot_free(snapshot);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_PATCHES 64u
#define FUZZ_LENGTH 64u
#define FUZZ_PAGES 3u

struct fuzz_patch {
	uint64_t offset;
	uint32_t length;
	uint32_t after;
	uint8_t bytes[FUZZ_LENGTH];
};

struct fuzz {
	struct testing_memory memory;
	uint8_t *good; /* the original book, to start again from */
	struct fuzz_patch patches[FUZZ_PATCHES];
	uint32_t count, next;
	uint64_t reads;
	FILE *out;
};

static struct fuzz *fuzz_new(void)
{
	struct fuzz *fuzz = calloc(1, sizeof(*fuzz));

	assert(fuzz);
	testing_memory_init(&fuzz->memory, TESTING_MEMORY_SIZE);
	testing_memory_write(&fuzz->memory, BOOK_RING_MIN);
	testing_memory_fill(&fuzz->memory);
	fuzz->memory.context = fuzz;
	fuzz->good = malloc(TESTING_MEMORY_SIZE);
	assert(fuzz->good);
	memcpy(fuzz->good, fuzz->memory.base, TESTING_MEMORY_SIZE);
	fuzz->out = fopen("/dev/null", "we");
	assert(fuzz->out);
	return fuzz;
}

/* The parts of the book that are read. */
static uint64_t fuzz_place(const struct fuzz *fuzz, uint32_t region, uint64_t offset)
{
	const struct book_shard *shard = fuzz->memory.writer->shards[0]->page;
	const struct book_arena *arenas = (const void *)(fuzz->memory.base + BOOK_ARENAS_OFFSET);

	switch (region % 11) {
	case 0:
		return offset % BOOK_PAGE;
	case 1:
		return BOOK_ARENAS_OFFSET + offset % (BOOK_ARENA_COUNT * sizeof(struct book_arena));
	case 2:
		return BOOK_SEGMENTS_OFFSET + BOOK_POOL_FIRST_UNIT * 8 + offset % 1280;
	case 3:
		return book_incident_offset(offset >> 8 & 3, 0) + offset % 512;
	case 4:
		return BOOK_DEVICES_OFFSET + offset % 4096;
	case 5:
	case 6:
		return book_shard_offset(0) + offset % sizeof(*shard);
	case 7: /* head, slots, and the units of ring and graves */
		return book_shard_offset(0) + offset % 80;
	case 8:
		return book_unit_offset(shard->ring_unit) + offset;
	case 9:
		return book_unit_offset(region & 0x80 ? shard->graves_unit : shard->directory[0]) +
		       offset % 8192;
	default:
		return book_unit_offset(arenas[BOOK_ARENA_STRINGS].directory[0]) + offset % 1024;
	}
}

static void fuzz_parse(struct fuzz *fuzz, const uint8_t *data, size_t size)
{
	fuzz->count = fuzz->next = 0;
	fuzz->reads = 0;
	while (size > 5 && fuzz->count < FUZZ_PATCHES) {
		struct fuzz_patch *patch = &fuzz->patches[fuzz->count];

		patch->offset = fuzz_place(fuzz, data[0], data[1] | (uint64_t)data[2] << 8);
		patch->after = data[3];
		patch->length = (uint32_t)bits_min(1 + data[4] % FUZZ_LENGTH, size - 5);
		memcpy(patch->bytes, data + 5, patch->length);
		data += 5 + patch->length;
		size -= 5 + patch->length;
		if (patch->offset + patch->length <= TESTING_MEMORY_SIZE)
			fuzz->count++;
	}
}

static void fuzz_before_read(struct testing_memory *memory)
{
	struct fuzz *fuzz = memory->context;

	while (fuzz->next < fuzz->count && fuzz->patches[fuzz->next].after <= fuzz->reads) {
		const struct fuzz_patch *patch = &fuzz->patches[fuzz->next++];

		testing_memory_patch(memory, patch->offset, patch->bytes, patch->length);
	}
	fuzz->reads++;
}

/* A namer that knows some of the names. */
static size_t fuzz_name(struct namer *namer, const struct namer_place *place,
			struct namer_name *ret_names, size_t max)
{
	(void)namer;
	assert(place->path && max > 0 && place->build_id_length <= 32);
	ret_names[0] = (struct namer_name){.function = "f", .file = "a.c", .line = 1};
	return place->address % 2;
}

/* A tour of all stacks ends, whatever the arena contains. */
static void fuzz_stacks(struct scan_book *book, struct namer *namer)
{
	struct pool texts = POOL_NULL;
	uint32_t next = 0;

	for (int n = 64, i = 0; n == 64 && i < 1024; i++) {
		uint32_t before = next;

		n = stacks_tour(book, namer, &texts, 64, &next);
		assert(n <= 0 || next > before);
	}
	pool_deinit(&texts);
}

static void fuzz_snapshot(struct fuzz *fuzz, struct scan_book *book, struct view *view)
{
	struct namer namer = {.find = fuzz_name};
	const struct snapshot_request request = {
		.buffers = true, .incidents = true, .namer = &namer};
	struct snapshot *snapshot = snapshot_new(1);
	struct growth growth = GROWTH_NULL;
	struct history history = HISTORY_NULL;
	struct emit json = EMIT_INIT(fuzz->out);
	struct filter filter = {0};

	assert(snapshot && book_collect(book, &request, view, snapshot) == 0);
	for (uint64_t address = 0x1000; address < 0x8000; address += 0x1000)
		assert(address_history_collect(book, address, &request, view, snapshot, &history) ==
		       0);
	fuzz_stacks(book, &namer);
	assert(snapshot_finish(snapshot) == 0);
	assert(growth_add(&growth, snapshot) == 0);
	growth_finish(&growth, false);
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_AGE);
	document_smi(&json, snapshot, &filter, NULL);
	document_ps(&json, snapshot, &filter, NULL);
	buffers_put(&json, snapshot);
	document_put(&json, &incidents_document, snapshot, snapshot);
	growth_put(&json, snapshot, &growth);
	document_put(&json, &history_document, snapshot,
		     &(struct history_answer){snapshot, &history, NULL, 0x1000});
	growth_deinit(&growth);
	history_deinit(&history);
	snapshot_free(snapshot);
}

/* Whatever the book says: the rows of a peak add up to what is known of it, which is never too much. */
static void fuzz_peaks(struct fuzz *fuzz, struct scan_book *book, struct view *view)
{
	const struct snapshot_request request = {.buffers = true, .at_peak = true};
	struct snapshot *snapshot = snapshot_new(1);
	struct emit json = EMIT_INIT(fuzz->out);

	(void)book_kept_look(book, view); /* may refuse it */
	assert(snapshot && book_collect(book, &request, view, snapshot) == 0);
	assert(book_kept_collect(book, &request, snapshot) == 0);
	assert(snapshot_finish(snapshot) == 0);
	for (size_t i = 0; i < snapshot->peak_count; i++) {
		const struct snapshot_peak *peak = &snapshot->peaks[i];
		uint64_t known = 0;

		for (size_t k = 0; k < peak->count; k++)
			known += snapshot->buffers[peak->first + k].size;
		assert(known == peak->known && known <= peak->bytes);
		assert(!peak->exact || known == peak->bytes);
	}
	snapshot_sort_peaks(snapshot);
	assert(peak_put(&json, snapshot, GROUP_SITE) == 0);
	snapshot_free(snapshot);
}

/* All pages end, and none holds more rows than allowed. */
static void fuzz_pages(struct fuzz *fuzz, struct scan_book *book, struct view *view)
{
	struct snapshot_request request = {.buffers = true, .limit = 3};
	struct emit json = EMIT_INIT(fuzz->out);
	bool more = true;

	for (uint32_t pages = 0; more && pages < FUZZ_PAGES; pages++) {
		struct snapshot *snapshot = snapshot_new(1);

		assert(snapshot && book_collect(book, &request, view, snapshot) == 0);
		assert(snapshot_finish(snapshot) == 0 && snapshot->buffer_count <= request.limit);
		buffers_put(&json, snapshot);
		more = snapshot->has_next;
		request.after = snapshot->next;
		request.has_after = true;
		snapshot_free(snapshot);
	}
}

static int fuzz_event(void *context, const struct follow_event *event)
{
	uint64_t *events = context;

	follow_apply(event);
	/* An endless log has to be cut off by the printer, not by the reader. */
	return ++*events > 100000 ? -1 : 0;
}

static void fuzz_follow(struct scan_book *book, struct view *view)
{
	struct follow follow = {.book = book, .pid_fd = -1, .from_start = true};
	struct log log = {0};
	uint64_t events = 0;

	for (int i = 0; i < 3; i++)
		(void)follow_poll(&follow, view, &log, fuzz_event, &events); /* may refuse it */
	free(follow.shards);
	log_deinit(&log);
}

/* Twice: the second time the sum is only compared with the book. */
static void fuzz_rest(struct scan_book *book, struct view *view)
{
	const struct snapshot_request totals = {0};
	struct snapshot *cards = snapshot_new(1);
	const struct book_rest_wish wish = {.cards = cards, .keep = 1};
	size_t looks = 0;

	assert(cards);
	for (int i = 0; i < 2; i++) {
		struct snapshot *snapshot = snapshot_new(1);
		int r = book_rest_renew(book, &wish, view, &looks);

		assert(r <= 0 && (r < 0 || book->rest));
		assert(snapshot && book_collect(book, &totals, view, snapshot) == 0);
		assert(snapshot_finish(snapshot) == 0);
		snapshot_free(snapshot);
	}
	snapshot_free(cards);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz *fuzz;
	static struct view view;

	if (!fuzz)
		fuzz = fuzz_new();
	fuzz_parse(fuzz, data, size);
	for (int alive = 0; alive < 2; alive++) {
		struct scan_book book = {.alive = alive, .owner = {.id.pid = 1, .comm = "fuzz"}};

		fuzz->next = 0;
		fuzz->reads = 0;
		fuzz->memory.before_read = fuzz_before_read;
		if (reader_init(&book.reader, &fuzz->memory.file) == 0) {
			fuzz_totals(&book, &view);
			fuzz_snapshot(fuzz, &book, &view);
			fuzz_pages(fuzz, &book, &view);
			fuzz_peaks(fuzz, &book, &view);
			fuzz_follow(&book, &view);
			fuzz_rest(&book, &view);
			totals_cache_deinit(&book.totals_cache);
			book_rest_drop(&book);
			book_kept_free(book.kept);
			reader_deinit(&book.reader);
		}
		fuzz->memory.before_read = NULL;
		memcpy(fuzz->memory.base, fuzz->good, TESTING_MEMORY_SIZE);
	}
	return 0;
}
