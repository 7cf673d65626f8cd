/* SPDX-License-Identifier: Apache-2.0 */

/* A snapshot has each text once, so a stack is known by its address. */

#include "cli/export/export-sites.h"

#include <stdlib.h>
#include <string.h>

#include "cli/common/must.h"
#include "cli/export/format/export-form.h"
#include "model/sites/name-stem.h"
#include "model/snapshot.h"

#define SITES_STEM_SIZE 2048u

/* @key: its other members, counters aside. */
static struct export_site *sites_place(struct export_sites *sites, const struct export_site *key)
{
	uintptr_t what = key->stack ? (uintptr_t)key->stack : (uintptr_t)key->name;
	uint64_t where = (uint64_t)key->process << 32 | key->device << 8 | key->type;
	uint32_t number = must_number(&sites->index, what, where);

	if (number > sites->count) {
		must_grow(sites->list, &sites->capacity, number);
		sites->list[sites->count++] = *key;
	}
	return &sites->list[number - 1];
}

static void sites_add(struct export_sites *sites, const struct snapshot_buffer *buffer)
{
	struct export_site key = {.process = buffer->process,
				  .device = buffer->device,
				  .type = buffer->type,
				  .stack = buffer->stack};
	struct export_site *site;
	char stem[SITES_STEM_SIZE];

	if (!key.stack && buffer->name) {
		name_stem(buffer->name, stem, sizeof(stem));
		key.name = must_text(&sites->stems, stem);
	}
	site = sites_place(sites, &key);
	site->buffers++;
	site->bytes += snapshot_buffer_bytes(buffer);
}

static void sites_count(struct export_sites *sites, const struct export_count *count)
{
	const struct export_site key = {.process = count->process,
					.device = count->device,
					.type = count->type,
					.stack = count->stack};
	struct export_site *site = sites_place(sites, &key);

	site->allocs += count->allocs;
	site->alloc_bytes += count->bytes;
}

struct export_sites export_sites_find(const struct export_target *target)
{
	const struct snapshot *snapshot = target->snapshot;
	struct export_sites sites = EXPORT_SITES_NULL;

	for (size_t i = 0; i < snapshot->buffer_count; i++)
		sites_add(&sites, &snapshot->buffers[i]);
	for (size_t i = 0; i < target->count_count; i++)
		sites_count(&sites, &target->counts[i]);
	return sites;
}

void export_sites_deinit(struct export_sites *sites)
{
	free(sites->list);
	pool_deinit(&sites->stems);
	map_deinit(&sites->index);
	*sites = EXPORT_SITES_NULL;
}
