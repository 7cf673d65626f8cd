/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Buffers are read page by page and added up at once. Pages have their own texts, so the text of a
 * site is what identifies it: two stacks whose frames look alike are one row, as labels must differ.
 */

#include "web/export/metrics-sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/pool.h"
#include "model/filter.h"
#include "model/merge.h"
#include "model/sites/leak-sites.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "web/api/group-pages.h"
#include "web/export/metrics.h"
#include "web/server/web.h"

#define METRICS_SITES_ROWS 32768u                  /* of any site, device and type */
#define METRICS_SITES_OWN (METRICS_SITES_ROWS / 2) /* more sites are added to the others */
#define METRICS_SITES_KNOWN 1024u                  /* stacks of a page whose text is known */

struct metrics_site {
	const char *site;
	uint32_t device;
	uint32_t number; /* of device and unique id */
	uint32_t type;
	uint64_t unique_id;
	uint64_t bytes;
	uint64_t buffers;
};

/* What the text of a page's buffer is: most buffers have one of a few stacks. */
struct metrics_sites_known {
	const struct stack *stack;
	const char *name;
	const char *phase;
	const char *site; /* NULL = nothing is known */
};

struct metrics_sites {
	struct pool texts;
	const char *other; /* its text; a site may be called so too */
	struct map devices;
	struct map numbers; /* of the rows, by site, device and type */
	struct metrics_site rows[METRICS_SITES_ROWS];
	struct metrics_sites_known known[METRICS_SITES_KNOWN];
};

static void metrics_sites_free(struct metrics_sites **sites)
{
	if (*sites) {
		pool_deinit(&(*sites)->texts);
		map_deinit(&(*sites)->devices);
		map_deinit(&(*sites)->numbers);
	}
	free(*sites);
}

/* As people call it: the frame that stands for the stack; without one the name, or the phase. */
static const char *metrics_sites_name(struct metrics_sites *sites,
				      const struct snapshot_buffer *buffer)
{
	char text[LEAK_SITES_TEXT];

	/* A name for each buffer must not take all memory. */
	if (sites->texts.count > METRICS_SITES_OWN)
		return sites->other;
	(void)leak_sites_text(buffer, text, sizeof(text));
	return pool_text(&sites->texts, text, strlen(text));
}

/* The text of a buffer's site; NULL = no memory. */
static const char *metrics_sites_text(struct metrics_sites *sites,
				      const struct snapshot_buffer *buffer)
{
	const char *name = buffer->stack ? NULL : buffer->name;
	const char *phase = buffer->stack || buffer->name ? NULL : buffer->phase;
	uint64_t hash = hash_fold((uintptr_t)buffer->stack ^ HASH_K0, (uintptr_t)name ^ HASH_K1) ^
			hash_u64((uintptr_t)phase);
	struct metrics_sites_known *known = &sites->known[hash % METRICS_SITES_KNOWN];

	if (!known->site || known->stack != buffer->stack || known->name != name ||
	    known->phase != phase)
		*known = (struct metrics_sites_known){
			.stack = buffer->stack,
			.name = name,
			.phase = phase,
			.site = metrics_sites_name(sites, buffer),
		};
	return known->site;
}

/* Adds to the row with these labels. -ENOSPC: there is none, and there are @most already. Texts are interned. */
static int metrics_sites_add_own(struct metrics_sites *sites, const struct metrics_site *more,
				 size_t most)
{
	uint64_t place = (uint64_t)more->number << 8 | more->type;
	uint32_t number = map_find(&sites->numbers, (uintptr_t)more->site, place);
	struct metrics_site *row;

	if (!number) {
		if (sites->numbers.count >= most)
			return -ENOSPC;
		if (map_add(&sites->numbers, (uintptr_t)more->site, place, &number) < 0)
			return -ENOMEM;
		sites->rows[number - 1] = *more;
		return 0;
	}
	row = &sites->rows[number - 1];
	row->bytes = merge_add(row->bytes, more->bytes);
	row->buffers += more->buffers;
	return 0;
}

static int metrics_sites_add(struct metrics_sites *sites, const struct metrics_site *more,
			     size_t most)
{
	int r = metrics_sites_add_own(sites, more, most);
	struct metrics_site other = *more;

	other.site = sites->other;
	if (r == -ENOSPC)
		r = metrics_sites_add_own(sites, &other, METRICS_SITES_ROWS);
	return r == -ENOSPC ? 0 : r; /* more devices than there are */
}

static int metrics_sites_page(void *context, const struct snapshot *page)
{
	struct metrics_sites *sites = context;
	const struct snapshot_part *part = NULL;
	uint32_t process = UINT32_MAX, device = 0;
	int r = 0;

	memset(sites->known, 0, sizeof(sites->known)); /* addresses of the page before */
	for (size_t i = 0; r == 0 && i < page->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &page->buffers[i];
		struct metrics_site more = {
			.type = buffer->type, .bytes = snapshot_buffer_bytes(buffer), .buffers = 1};

		/* Buffers are sorted by process and device: look up once for each. */
		if (buffer->process != process || buffer->device != device)
			part = snapshot_find_part(page, buffer->process, buffer->device);
		process = buffer->process;
		device = buffer->device;
		if (!part || !page->processes[process].alive)
			continue;
		more.device = page->devices[part->row].device;
		more.unique_id = part->facts.unique_id;
		more.site = metrics_sites_text(sites, buffer);
		if (!more.site ||
		    map_add(&sites->devices, more.device, more.unique_id, &more.number) < 0)
			return -ENOMEM;
		r = metrics_sites_add(sites, &more, METRICS_SITES_OWN);
	}
	return r;
}

/* Largest first; then by label, so that the order is stable. */
static int metrics_sites_compare(const void *left, const void *right)
{
	const struct metrics_site *a = left, *b = right;
	int r = bits_compare(b->bytes, a->bytes);

	if (r == 0)
		r = strcmp(a->site, b->site);
	if (r == 0)
		r = bits_compare(a->device, b->device);
	return r ? r : bits_compare(a->type, b->type);
}

/* Keeps the largest rows, and adds the others up behind them. */
static int metrics_sites_rank(struct metrics_sites *sites, size_t wanted)
{
	size_t count = sites->numbers.count;
	int r = 0;

	qsort(sites->rows, count, sizeof(*sites->rows), metrics_sites_compare);
	map_deinit(&sites->numbers);
	/* A row is written at its place or before it, after it was copied. */
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct metrics_site row = sites->rows[i];

		if (row.site != sites->other && wanted > 0)
			wanted--;
		else
			row.site = sites->other;
		r = metrics_sites_add(sites, &row, METRICS_SITES_ROWS);
	}
	return r;
}

static void metrics_sites_family(struct exposition *to, const struct metrics_sites *sites,
				 bool buffers)
{
	for (size_t i = 0; i < sites->numbers.count; i++) {
		const struct metrics_site *row = &sites->rows[i];

		exposition_begin(to);
		exposition_label(to, "site", row->site);
		metrics_label_device(to, row->device, row->unique_id);
		exposition_label(to, "type", types_name(row->type));
		exposition_u64(to, buffers ? row->buffers : row->bytes);
	}
}

static void metrics_sites_leak(struct exposition *to, const struct leak_site *row, bool buffers)
{
	exposition_begin(to);
	exposition_label(to, "site", row->site);
	exposition_label(to, "type", types_name(row->type));
	exposition_u64(to, buffers ? row->buffers : row->bytes);
}

static void metrics_sites_leak_family(struct exposition *to, const struct leak_sites *leaks,
				      bool buffers)
{
	for (size_t i = 0; i < leaks->count; i++)
		metrics_sites_leak(to, &leaks->rows[i], buffers);
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (*leaks->others[type].site)
			metrics_sites_leak(to, &leaks->others[type], buffers);
	}
}

/* By their site only: a leak of one line is one, whatever the device. */
static int metrics_sites_leaks(struct exposition *to, const struct web_provider *provider)
{
	CLEANUP_FREE struct leak_sites *leaks = calloc(1, sizeof(*leaks));

	if (!leaks)
		return -ENOMEM;
	if (!provider->leak_sites)
		return 0;
	provider->leak_sites(provider->context, leaks);
	exposition_family(to, "ttmem_leaked_bytes", EXPOSITION_COUNTER, "bytes",
			  "Memory that processes have left when they ended, by call site.");
	metrics_sites_leak_family(to, leaks, false);
	exposition_family(to, "ttmem_leaked_buffers", EXPOSITION_COUNTER, NULL,
			  "Buffers that processes have left when they ended, by call site.");
	metrics_sites_leak_family(to, leaks, true);
	return 0;
}

int metrics_sites_write(const struct web_provider *provider, size_t wanted,
			enum exposition_format format, FILE *out)
{
	static const struct snapshot_request everything;
	CLEANUP(metrics_sites_free) struct metrics_sites *sites = calloc(1, sizeof(*sites));
	struct exposition to = {.out = out, .format = format};
	int r;

	if (!sites || !(sites->other = pool_text(&sites->texts, "other", strlen("other"))))
		return -ENOMEM;
	r = group_pages_each(provider, &everything, metrics_sites_page, sites);
	if (r == 0)
		r = metrics_sites_rank(sites, bits_min(wanted, METRICS_SITES_MAX));
	if (r < 0)
		return r;
	exposition_start(&to);
	exposition_family(&to, "ttmem_site_bytes", EXPOSITION_GAUGE, "bytes",
			  "Memory in use, of the largest call sites and of all others.");
	metrics_sites_family(&to, sites, false);
	exposition_family(&to, "ttmem_site_buffers", EXPOSITION_GAUGE, NULL,
			  "Live buffers, of the largest call sites and of all others.");
	metrics_sites_family(&to, sites, true);
	r = metrics_sites_leaks(&to, provider);
	exposition_end(&to);
	return r;
}
