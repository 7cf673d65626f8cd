/* SPDX-License-Identifier: Apache-2.0 */

/* A snapshot has each text once, so a stack is known by its address. */

#include "cli/export/export-sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/export/format/export-form.h"
#include "model/sites/name-stem.h"
#include "model/snapshot.h"

#define SITES_STEM_SIZE 2048u

/* @key: its other members, counters aside. NULL: no memory. */
static struct export_site *sites_place(struct export_sites *sites, const struct export_site *key)
{
	uintptr_t what = (uintptr_t)(key->stack ? key->stack : key->name);
	uint64_t where = (uint64_t)key->process << 32 | key->device << 8 | key->type;
	size_t before = sites->index.count;
	struct export_site *list =
		array_grow(sites->list, &sites->capacity, before + 1, sizeof(*list));
	uint32_t number;

	if (!list)
		return NULL;
	sites->list = list;
	if (map_add(&sites->index, what, where, &number) < 0)
		return NULL;
	if (sites->index.count > before)
		sites->list[sites->count++] = *key;
	return &sites->list[number - 1];
}

static int sites_add(struct export_sites *sites, const struct snapshot_buffer *buffer)
{
	struct export_site key = {.process = buffer->process,
				  .device = buffer->device,
				  .type = buffer->type,
				  .stack = buffer->stack};
	struct export_site *site;
	char stem[SITES_STEM_SIZE];

	if (!key.stack && buffer->name) {
		name_stem(buffer->name, stem, sizeof(stem));
		key.name = pool_text(&sites->stems, stem, strlen(stem));
		if (!key.name)
			return -ENOMEM;
	}
	site = sites_place(sites, &key);
	if (!site)
		return -ENOMEM;
	site->buffers++;
	site->bytes += snapshot_buffer_bytes(buffer);
	return 0;
}

static int sites_count(struct export_sites *sites, const struct export_count *count)
{
	const struct export_site key = {.process = count->process,
					.device = count->device,
					.type = count->type,
					.stack = count->stack};
	struct export_site *site = sites_place(sites, &key);

	if (!site)
		return -ENOMEM;
	site->allocs += count->allocs;
	site->alloc_bytes += count->bytes;
	return 0;
}

int export_sites_find(const struct export_target *target, struct export_sites *ret_sites)
{
	const struct snapshot *snapshot = target->snapshot;
	struct export_sites sites = EXPORT_SITES_NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->buffer_count; i++)
		r = sites_add(&sites, &snapshot->buffers[i]);
	for (size_t i = 0; r == 0 && i < target->count_count; i++)
		r = sites_count(&sites, &target->counts[i]);
	if (r < 0)
		export_sites_deinit(&sites);
	*ret_sites = sites;
	return r;
}

void export_sites_deinit(struct export_sites *sites)
{
	free(sites->list);
	pool_deinit(&sites->stems);
	map_deinit(&sites->index);
	*sites = EXPORT_SITES_NULL;
}
