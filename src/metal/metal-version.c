/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The build id is in the loaded library. A version is not: a wheel has it in the name of a folder beside
 * the package.
 */

#include "metal/metal-version.h"

#include <dirent.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

#define METAL_VERSION_BUILD_ID_MAX 32
#define METAL_VERSION_LENGTH 64

struct metal_version_search {
	const char *library;
	char build_id[2 * METAL_VERSION_BUILD_ID_MAX + 1];
};

static void metal_version_read_notes(const char *notes, size_t size,
				     struct metal_version_search *search)
{
	ElfW(Nhdr) head;

	for (size_t at = 0; at + sizeof(head) <= size;) {
		size_t name = at + sizeof(head), bytes;

		memcpy(&head, notes + at, sizeof(head));
		bytes = name + bits_align_up(head.n_namesz, 4);
		at = bytes + bits_align_up(head.n_descsz, 4);
		if (at > size || head.n_type != NT_GNU_BUILD_ID || head.n_namesz != 4 ||
		    memcmp(notes + name, "GNU", 4) != 0 ||
		    head.n_descsz > METAL_VERSION_BUILD_ID_MAX)
			continue;
		for (size_t i = 0; i < head.n_descsz; i++)
			(void)snprintf(search->build_id + 2 * i, 3, "%02x",
				       (unsigned char)notes[bytes + i]); /* fits */
		return;
	}
}

static int metal_version_visit(struct dl_phdr_info *info, size_t size, void *context)
{
	struct metal_version_search *search = context;

	(void)size; /* all fields used here have always been there */
	if (strcmp(info->dlpi_name, search->library) != 0)
		return 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t address = info->dlpi_addr + part->p_vaddr;
		const char *notes;

		memcpy(&notes, &address, sizeof(notes));
		if (part->p_type == PT_NOTE)
			metal_version_read_notes(notes, part->p_memsz, search);
	}
	return 1;
}

/* "0.68.0" of "ttnn-0.68.0.dist-info". */
static bool metal_version_parse(const char *name, char *version)
{
	static const char end[] = ".dist-info";
	size_t length = strlen(name);

	if (strncmp(name, "ttnn-", 5) != 0 || length <= 5 + sizeof(end) - 1 ||
	    strcmp(name + length - (sizeof(end) - 1), end) != 0)
		return false;
	length = bits_min(length - 5 - (sizeof(end) - 1), METAL_VERSION_LENGTH - 1);
	memcpy(version, name + 5, length);
	version[length] = '\0';
	return true;
}

static bool metal_version_look_in(const char *folder, char *version)
{
	DIR *listing = opendir(folder);
	const struct dirent *entry;
	bool is_found = false;

	if (!listing)
		return false;
	while (!is_found && (entry = readdir(listing)))
		is_found = metal_version_parse(entry->d_name, version);
	closedir(listing);
	return is_found;
}

/* In the folder of Python packages that the library is below of, if it is. */
static bool metal_version_find(const char *library, char *version)
{
	char *folder = strdup(library), *slash;
	bool is_found = false;

	while (folder && !is_found && (slash = strrchr(folder, '/')) && slash != folder) {
		*slash = '\0';
		slash = strrchr(folder, '/');
		if (slash &&
		    (strcmp(slash, "/site-packages") == 0 || strcmp(slash, "/dist-packages") == 0))
			is_found = metal_version_look_in(folder, version);
	}
	free(folder);
	return is_found;
}

void metal_version_describe(const char *library, char *text, size_t size)
{
	struct metal_version_search search = {.library = library};
	char version[METAL_VERSION_LENGTH] = "unknown";

	(void)dl_iterate_phdr(metal_version_visit, &search); /* whether it was found shows */
	(void)metal_version_find(library, version);          /* "unknown" stays */
	(void)snprintf(text, size, "build id %s, version %s, %s",
		       *search.build_id ? search.build_id : "unknown", version, library);
}
