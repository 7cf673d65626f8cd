/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the ELF headers of loaded files. */

#include "lib/stack/image.h"

#include <elf.h>
#include <string.h>

#include "base/bits.h"
#include "book/format/layout.h"

#define IMAGE_NOTE_MAX 65536u
#define IMAGE_LINKS_MAX 4096u

/* Whether this part of the file is in memory and readable. */
static bool image_holds(const struct dl_phdr_info *info, uintptr_t address, size_t length)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && header->p_flags & PF_R &&
		    address >= header->p_vaddr && length <= header->p_filesz &&
		    address - header->p_vaddr <= header->p_filesz - length)
			return true;
	}
	return false;
}

uintptr_t image_start(const struct dl_phdr_info *info)
{
	uintptr_t low = UINTPTR_MAX;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			low = bits_min(low, info->dlpi_phdr[i].p_vaddr);
	}
	return info->dlpi_addr + bits_align_down(low, IMAGE_PAGE);
}

/* A note has two lengths and a type, then name and contents, each padded to 4 bytes. */
static const void *image_note(const uint8_t *note, size_t length, struct book_module *module)
{
	while (length >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) head;
		size_t name, whole;

		memcpy(&head, note, sizeof(head));
		name = sizeof(head) + bits_align_up(head.n_namesz, 4);
		whole = name + bits_align_up(head.n_descsz, 4);
		if (whole > length)
			return NULL;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
		    memcmp(note + sizeof(head), "GNU", 4) == 0 &&
		    head.n_descsz <= sizeof(module->build_id)) {
			memcpy(module->build_id, note + name, head.n_descsz);
			module->build_id_length = head.n_descsz;
			return note + name;
		}
		note += whole;
		length -= whole;
	}
	return NULL;
}

const void *image_build_id(const struct dl_phdr_info *info, struct book_module *module)
{
	const void *found = NULL;

	for (size_t i = 0; i < info->dlpi_phnum && !found; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_NOTE && header->p_filesz <= IMAGE_NOTE_MAX &&
		    image_holds(info, header->p_vaddr, header->p_filesz))
			found = image_note((const uint8_t *)info->dlpi_addr + header->p_vaddr,
					   header->p_filesz, module);
	}
	return found;
}

bool image_links(const struct dl_phdr_info *info, struct image_links *ret_links)
{
	struct image_links links = {.entries = NULL};
	uintptr_t strings = 0;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_DYNAMIC ||
		    !image_holds(info, header->p_vaddr, header->p_filesz))
			continue;
		links.entries = (const void *)((const char *)info->dlpi_addr + header->p_vaddr);
		links.count = bits_min(header->p_filesz / sizeof(ElfW(Dyn)), IMAGE_LINKS_MAX);
	}
	for (size_t i = 0; i < links.count && links.entries[i].d_tag != DT_NULL; i++) {
		const ElfW(Dyn) *entry = &links.entries[i];

		if (entry->d_tag == DT_STRTAB)
			strings = entry->d_un.d_ptr;
		else if (entry->d_tag == DT_STRSZ)
			links.strings_size = entry->d_un.d_val;
		else if (entry->d_tag == DT_FLAGS_1)
			links.is_nodelete = entry->d_un.d_val & DF_1_NODELETE;
	}
	/* Most loaders replace the offset in the file with the address in memory. */
	if (strings >= info->dlpi_addr)
		strings -= info->dlpi_addr;
	if (!links.strings_size || !image_holds(info, strings, links.strings_size))
		return false;
	links.strings = (const char *)info->dlpi_addr + strings;
	*ret_links = links;
	return true;
}

const char *image_name(const struct image_links *links, const ElfW(Dyn) * entry)
{
	size_t at = entry->d_un.d_val;

	if (at >= links->strings_size ||
	    !memchr(links->strings + at, '\0', links->strings_size - at))
		return NULL;
	return image_base(links->strings + at);
}

const char *image_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
