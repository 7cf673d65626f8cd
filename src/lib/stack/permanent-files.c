/* SPDX-License-Identifier: Apache-2.0 */

/* Collects the needed names in the order of the loader's list. */

#include "lib/stack/permanent-files.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "lib/stack/image.h"

#define PERMANENT_FILES_MAX \
	512u /* names, and files; any beyond that may be unloaded as far as we know */

/* A needed name, which only one file can have. */
struct permanent_files_name {
	uint64_t hash;
	bool is_met;
};

static struct permanent_files_name permanent_files_names[PERMANENT_FILES_MAX];
static size_t permanent_files_count;
static bool permanent_files_has_program; /* the first file in the list */
static uintptr_t permanent_files_bases[PERMANENT_FILES_MAX];
static size_t permanent_files_base_count;

void permanent_files_begin(void)
{
	permanent_files_count = 0;
	permanent_files_has_program = false;
}

static struct permanent_files_name *permanent_files_find(uint64_t hash)
{
	for (size_t i = 0; i < permanent_files_count; i++) {
		if (permanent_files_names[i].hash == hash)
			return &permanent_files_names[i];
	}
	return NULL;
}

static void permanent_files_need(const char *name)
{
	uint64_t hash = hash_bytes(name, strlen(name));

	if (permanent_files_count < PERMANENT_FILES_MAX && !permanent_files_find(hash))
		permanent_files_names[permanent_files_count++] =
			(struct permanent_files_name){.hash = hash};
}

/* Return: whether this is the file that others need. */
static bool permanent_files_is_needed(const char *name)
{
	struct permanent_files_name *known =
		*name ? permanent_files_find(hash_bytes(name, strlen(name))) : NULL;

	if (!known || known->is_met)
		return false;
	known->is_met = true;
	return true;
}

/* A file takes all of its names, even if one is enough. */
static bool permanent_files_is_wanted(const struct dl_phdr_info *info,
				      const struct image_links *links)
{
	bool is_wanted =
		permanent_files_is_needed(image_base(info->dlpi_name ? info->dlpi_name : ""));

	for (size_t i = 0; i < links->count && links->entries[i].d_tag != DT_NULL; i++) {
		const char *name = links->entries[i].d_tag == DT_SONAME
					   ? image_name(links, &links->entries[i])
					   : NULL;

		if (name && permanent_files_is_needed(name))
			is_wanted = true;
	}
	return is_wanted || links->is_nodelete;
}

bool permanent_files_meet(const struct dl_phdr_info *info)
{
	struct image_links links = {.count = 0};
	bool has_links = image_links(info, &links);
	bool is_lasting = permanent_files_is_wanted(info, &links) || !permanent_files_has_program;

	permanent_files_has_program = true;
	if (!is_lasting || !has_links)
		return is_lasting;
	for (size_t i = 0; i < links.count && links.entries[i].d_tag != DT_NULL; i++) {
		const char *name = links.entries[i].d_tag == DT_NEEDED
					   ? image_name(&links, &links.entries[i])
					   : NULL;

		if (name)
			permanent_files_need(name);
	}
	if (!permanent_files_knows(info->dlpi_addr) &&
	    permanent_files_base_count < PERMANENT_FILES_MAX)
		permanent_files_bases[permanent_files_base_count++] = info->dlpi_addr;
	return true;
}

bool permanent_files_knows(uintptr_t base)
{
	for (size_t i = 0; i < permanent_files_base_count; i++) {
		if (permanent_files_bases[i] == base)
			return true;
	}
	return false;
}
