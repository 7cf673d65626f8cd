/* SPDX-License-Identifier: Apache-2.0 */

/* Call sites of a peak, and keeping them. */

#include "source/books/book-kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/format/event.h"
#include "source/books/book-peak.h"
#include "source/books/book-private.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"

static int book_sites_compare(const void *left, const void *right)
{
	const struct book_record *a = left, *b = right;

	if (a->stack != b->stack)
		return bits_compare(a->stack, b->stack);
	if (a->name != b->name)
		return bits_compare(a->name, b->name);
	return bits_compare(a->phase, b->phase);
}

static int book_sites_compare_sizes(const void *left, const void *right)
{
	const struct book_site *a = left, *b = right;

	return bits_compare(b->bytes, a->bytes);
}

int book_sites_new(struct book_record *records, size_t count, struct book_site **ret_sites,
		   size_t *ret_count)
{
	struct book_site *sites = calloc(count + 1, sizeof(*sites));
	size_t n = 0;

	if (!sites)
		return -ENOMEM;
	if (count > 1)
		qsort(records, count, sizeof(*records), book_sites_compare);
	for (size_t i = 0; i < count; i++) {
		const struct book_record *record = &records[i];

		if (i == 0 || book_sites_compare(record - 1, record) != 0)
			sites[n++] = (struct book_site){.stack = record->stack,
							.name = record->name,
							.phase = record->phase,
							.birth = record->birth};
		sites[n - 1].buffers++;
		sites[n - 1].bytes += event_bytes(record);
		sites[n - 1].birth = bits_min(sites[n - 1].birth, record->birth);
	}
	if (n > 1)
		qsort(sites, n, sizeof(*sites), book_sites_compare_sizes);
	*ret_sites = sites;
	*ret_count = n;
	return 0;
}

#define BOOK_KEPT_LOOK_NS (NS_PER_S / 10)

/* Kept by all books; atomic. */
static uint64_t book_kept_bytes;

/* Without names and phases, except where there is no stack: then nothing else tells sites apart. */
static size_t book_sites_by_stack(struct book_record *records, size_t count,
				  struct book_site *sites)
{
	CLEANUP_FREE struct book_site *fewer = NULL;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		records[i].name = records[i].stack ? 0 : records[i].name;
		records[i].phase = records[i].stack ? 0 : records[i].phase;
	}
	if (book_sites_new(records, count, &fewer, &n) < 0)
		return 0;
	memcpy(sites, fewer, n * sizeof(*sites));
	return n;
}

static struct book_kept_peak *book_kept_at(const struct book_kept *kept, uint32_t device,
					   uint32_t type)
{
	for (size_t i = 0; kept && i < kept->count; i++) {
		if (kept->peaks[i].device == device && kept->peaks[i].type == type)
			return &kept->peaks[i];
	}
	return NULL;
}

const struct book_kept_peak *book_kept_find(const struct book_kept *kept, uint32_t device,
					    uint32_t type, const struct book_peak *peak)
{
	const struct book_kept_peak *found = book_kept_at(kept, device, type);

	return found && found->bytes == peak->bytes && found->time == peak->time &&
			       found->known > peak->known
		       ? found
		       : NULL;
}

/* Which types of a view have a peak that is not kept. */
static uint32_t book_kept_new_types(const struct book_kept *kept, const struct view *view)
{
	uint32_t types = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct book_hot *hot = &view->hot[type];
		const struct book_kept_peak *known = book_kept_at(kept, view->device, type);

		if (hot->peak > 0 &&
		    (!known || known->bytes != hot->peak || known->time != hot->peak_time))
			types |= 1u << type;
	}
	return types;
}

/* The entry of a device and type, made if need be; NULL: no memory, or there are too many. */
static struct book_kept_peak *book_kept_make(struct book_kept *kept, uint32_t device, uint32_t type)
{
	struct book_kept_peak *peak = book_kept_at(kept, device, type);

	if (peak || kept->count >= BOOK_KEPT_PEAKS_MAX)
		return peak;
	peak = array_grow(kept->peaks, &kept->capacity, kept->count + 1, sizeof(*peak));
	if (!peak)
		return NULL;
	kept->peaks = peak;
	peak = &kept->peaks[kept->count++];
	*peak = (struct book_kept_peak){.device = device, .type = type};
	return peak;
}

static void book_kept_forget(struct book_kept *kept, struct book_kept_peak *entry)
{
	kept->sites -= entry->count;
	__atomic_fetch_sub(&book_kept_bytes, entry->count * sizeof(*entry->sites),
			   __ATOMIC_RELAXED);
	free(entry->sites);
	entry->sites = NULL;
	entry->count = 0;
}

static int book_kept_put(struct book_kept *kept, uint32_t device, uint32_t type,
			 struct book_peaks *peaks)
{
	const struct book_peak *peak = &peaks->types[type];
	struct book_kept_peak *entry = book_kept_make(kept, device, type);
	struct book_site *sites;
	size_t count, most;
	int r;

	if (!entry)
		return 0;
	most = BOOK_KEPT_BOOK_MAX / sizeof(*sites) - (kept->sites - entry->count);
	most = bits_min(most, BOOK_KEPT_SITES_MAX);
	r = book_sites_new(peaks->records + peak->first, peak->count, &sites, &count);
	if (r < 0)
		return r;
	if (count > most)
		count = book_sites_by_stack(peaks->records + peak->first, peak->count, sites);
	book_kept_forget(kept, entry);
	*entry = (struct book_kept_peak){.device = device,
					 .type = type,
					 .bytes = peak->bytes,
					 .time = peak->time,
					 .moment = peak->moment,
					 .per_bank = peak->per_bank,
					 .sites = sites,
					 .count = bits_min(count, most)};
	for (size_t i = 0; i < entry->count; i++)
		entry->known += sites[i].bytes;
	entry->exact = peak->exact && entry->known == entry->bytes;
	/* The rest of the array may be large. On failure it stays as it is. */
	sites = realloc(entry->sites, (entry->count + 1) * sizeof(*sites));
	entry->sites = sites ? sites : entry->sites;
	kept->sites += entry->count;
	__atomic_fetch_add(&book_kept_bytes, entry->count * sizeof(*sites), __ATOMIC_RELAXED);
	return 0;
}

static int book_kept_look_at(struct scan_book *book, struct view *view, uint32_t device,
			     struct book_peaks *peaks)
{
	struct book_peak_wish wish = {
		.device = device, .owner = VIEW_LIVING, .slots_max = BOOK_KEPT_SLOTS_MAX};
	struct timebase timebase;
	int r = view_read_totals(view, &book->reader, device, VIEW_LIVING);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	wish.types = book_kept_new_types(book->kept, view);
	if (!wish.types)
		return 0;
	book_timebase(book, &timebase);
	wish.doubt = book_peak_doubt(&timebase);
	r = book_peaks_read(peaks, view, &book->reader, &wish);
	if (r < 0 || !view->rows_exact)
		return r == -ENOMEM ? r : 0; /* perhaps the next time */
	for (uint32_t type = 0; r == 0 && type < BOOK_TYPES; type++) {
		if (wish.types >> type & 1)
			r = book_kept_put(book->kept, device, type, peaks);
	}
	return r;
}

/* Devices from @from up to, not including, @to. -EAGAIN: there was no time for all. */
static int book_kept_look_from(struct scan_book *book, struct view *view, uint32_t from,
			       uint32_t to, uint64_t deadline)
{
	CLEANUP(book_peaks_deinit) struct book_peaks peaks = {.count = 0};
	int64_t device = reader_next_shard(&book->reader, from);
	int r = 0;

	while (r == 0 && device >= 0 && device < to && book->kept->count < BOOK_KEPT_PEAKS_MAX &&
	       __atomic_load_n(&book_kept_bytes, __ATOMIC_RELAXED) < BOOK_KEPT_BYTES_MAX) {
		book->kept->next = (uint32_t)device;
		if (clock_ns(CLOCK_MONOTONIC) > deadline)
			return -EAGAIN;
		r = book_kept_look_at(book, view, (uint32_t)device, &peaks);
		device = reader_next_shard(&book->reader, (uint32_t)device + 1);
	}
	return r;
}

int book_kept_look(struct scan_book *book, struct view *view)
{
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + BOOK_KEPT_LOOK_NS;
	uint32_t from;
	int r = reader_refresh(&book->reader);

	if (r < 0)
		return r;
	if (!book->kept)
		book->kept = calloc(1, sizeof(*book->kept));
	if (!book->kept)
		return -ENOMEM;
	/* Where the last look had to stop, so that no device has to wait for ever. */
	from = book->kept->next;
	r = book_kept_look_from(book, view, from, BOOK_DEVICES, deadline);
	return r < 0 ? r : book_kept_look_from(book, view, 0, from, deadline);
}

struct book_kept *book_kept_free(struct book_kept *kept)
{
	for (size_t i = 0; kept && i < kept->count; i++)
		book_kept_forget(kept, &kept->peaks[i]);
	if (kept)
		free(kept->peaks);
	free(kept);
	return NULL;
}
