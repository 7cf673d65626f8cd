/* SPDX-License-Identifier: Apache-2.0 */

/* Collects the needed names in the order of the loader's list. */

#include "lib/stack/permanent-files.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "lib/stack/image.h"

#define LASTING_MAX 512u /* names, and files; any beyond that may be unloaded as far as we know */

/* A needed name, which only one file can have. */
struct lasting_name {
	uint64_t hash;
	bool is_met;
};

static struct lasting_name lasting_names[LASTING_MAX];
static size_t lasting_count;
static bool lasting_has_program; /* the first file in the list */
static uintptr_t lasting_bases[LASTING_MAX];
static size_t lasting_base_count;

void lasting_begin(void)
{
	lasting_count = 0;
	lasting_has_program = false;
}

static struct lasting_name *lasting_find(uint64_t hash)
{
	for (size_t i = 0; i < lasting_count; i++) {
		if (lasting_names[i].hash == hash)
			return &lasting_names[i];
	}
	return NULL;
}

static void lasting_need(const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name));

	if (lasting_count < LASTING_MAX && !lasting_find(hash))
		lasting_names[lasting_count++] = (struct lasting_name){.hash = hash};
}

/* Return: whether this is the file that others need. */
static bool lasting_is_needed(const char *name)
{
	struct lasting_name *known = *name ? lasting_find(hash_bytes(name, strlen(name))) : NULL;

	if (!known || known->is_met)
		return false;
	known->is_met = true;
	return true;
}

/* A file takes all of its names, even if one is enough. */
static bool lasting_is_wanted(const struct dl_phdr_info *info, const struct image_links *links)
{
	bool is_wanted = lasting_is_needed(image_base(info->dlpi_name ? info->dlpi_name : ""));

	for (size_t i = 0; i < links->count && links->entries[i].d_tag != DT_NULL; i++) {
		const char *name = links->entries[i].d_tag == DT_SONAME
					   ? image_name(links, &links->entries[i])
					   : NULL;

		if (name && lasting_is_needed(name))
			is_wanted = true;
	}
	return is_wanted || links->is_nodelete;
}

bool lasting_meet(const struct dl_phdr_info *info)
{
	struct image_links links = {.count = 0};
	bool has_links = image_links(info, &links);
	bool is_lasting = lasting_is_wanted(info, &links) || !lasting_has_program;

	lasting_has_program = true;
	if (!is_lasting || !has_links)
		return is_lasting;
	for (size_t i = 0; i < links.count && links.entries[i].d_tag != DT_NULL; i++) {
		const char *name = links.entries[i].d_tag == DT_NEEDED
					   ? image_name(&links, &links.entries[i])
					   : NULL;

		if (name)
			lasting_need(name);
	}
	if (!lasting_knows(info->dlpi_addr) && lasting_base_count < LASTING_MAX)
		lasting_bases[lasting_base_count++] = info->dlpi_addr;
	return true;
}

bool lasting_knows(uintptr_t base)
{
	for (size_t i = 0; i < lasting_base_count; i++) {
		if (lasting_bases[i] == base)
			return true;
	}
	return false;
}
