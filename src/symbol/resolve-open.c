/* SPDX-License-Identifier: Apache-2.0 */

/* Opens an ELF file and the file with its debug information, if they belong together. */

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/bits.h"
#include "symbol/resolve-private.h"
#include "symbol/resolve.h"

#define RESOLVE_CHUNK 65536u

static int resolve_open_elf(int fd, Elf **ret_elf)
{
	struct stat file;
	GElf_Ehdr header;
	Elf *elf;

	if (fstat(fd, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode))
		return -EINVAL;
	if ((uint64_t)file.st_size > RESOLVE_FILE_MAX)
		return -EFBIG;
	(void)elf_version(EV_CURRENT); /* libelf requires this; there is no other version */
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf)
		return -EINVAL;
	/* Archives and object files have no addresses of their own. */
	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header) ||
	    (header.e_type != ET_EXEC && header.e_type != ET_DYN)) {
		(void)elf_end(elf); /* drops a reference; cannot fail */
		return -EINVAL;
	}
	*ret_elf = elf;
	return 0;
}

static int resolve_checksum(int fd, uint32_t *ret_crc)
{
	unsigned char bytes[RESOLVE_CHUNK];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, bytes, sizeof(bytes), at);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		crc = crc32(crc, bytes, (uInt)n);
		at += n;
	}
	*ret_crc = (uint32_t)crc;
	return 0;
}

/* A debug file has the same build id; without one, it must have the checksum given by the link. */
static bool resolve_belongs(const struct resolve *resolve, Elf *debug, int fd)
{
	const struct resolve_facts *facts = &resolve->facts;
	const void *bytes;
	uint32_t crc = 0;
	ssize_t length = dwelf_elf_gnu_build_id(debug, &bytes);

	if (length > 0 && facts->build_id_length > 0)
		return (size_t)length == facts->build_id_length &&
		       memcmp(bytes, facts->build_id, (size_t)length) == 0;
	return facts->link[0] && resolve_checksum(fd, &crc) == 0 && crc == facts->link_crc;
}

static void resolve_read_facts(struct resolve *resolve)
{
	struct resolve_facts *facts = &resolve->facts;
	const void *bytes;
	GElf_Word crc = 0;
	ssize_t length = dwelf_elf_gnu_build_id(resolve->file.elf, &bytes);
	const char *link = dwelf_elf_gnu_debuglink(resolve->file.elf, &crc);

	if (length > 0 && (size_t)length <= RESOLVE_BUILD_ID_MAX) {
		memcpy(facts->build_id, bytes, (size_t)length);
		facts->build_id_length = (uint32_t)length;
	}
	if (link && strnlen(link, sizeof(facts->link)) < sizeof(facts->link)) {
		memcpy(facts->link, link, strlen(link));
		facts->link_crc = crc;
	}
}

/* A stripped file can be opened too, but contains no units. */
static bool resolve_has_units(Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;

	return dwarf && dwarf_get_units(dwarf, NULL, &unit, NULL, NULL, NULL, NULL) == 0;
}

static void resolve_open_dwarf(struct resolve_file *file)
{
	file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (resolve_has_units(file->dwarf))
		return;
	(void)dwarf_end(file->dwarf); /* accepts NULL */
	file->dwarf = NULL;
}

int resolve_new(struct resolve **ret_resolve, int fd, int debug_fd)
{
	struct resolve *resolve = calloc(1, sizeof(*resolve));
	int r = resolve ? resolve_open_elf(fd, &resolve->file.elf) : -ENOMEM;

	if (r < 0) {
		resolve_free(resolve);
		return r;
	}
	resolve_read_facts(resolve);
	resolve_open_dwarf(&resolve->file);
	resolve->facts.has_debug = resolve->file.dwarf;
	/* A debug file that cannot be used is ignored. */
	if (debug_fd >= 0 && resolve_open_elf(debug_fd, &resolve->debug.elf) == 0) {
		if (resolve_belongs(resolve, resolve->debug.elf, debug_fd)) {
			resolve_open_dwarf(&resolve->debug);
		} else {
			(void)elf_end(resolve->debug.elf); /* drops a reference */
			resolve->debug.elf = NULL;
		}
	}
	*ret_resolve = resolve;
	return 0;
}

static void resolve_file_deinit(struct resolve_file *file)
{
	functions_deinit(&file->functions);
	scopes_deinit(&file->scopes);
	(void)dwarf_end(file->dwarf); /* both accept NULL and cannot fail */
	(void)elf_end(file->elf);
}

struct resolve *resolve_free(struct resolve *resolve)
{
	if (!resolve)
		return NULL;
	resolve_file_deinit(&resolve->debug);
	resolve_file_deinit(&resolve->file);
	free(resolve);
	return NULL;
}

void resolve_facts(const struct resolve *resolve, struct resolve_facts *ret_facts)
{
	*ret_facts = resolve->facts;
}
