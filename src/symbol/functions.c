/* SPDX-License-Identifier: Apache-2.0 */

/* A sorted list of functions, searched by bisection. */

#include "symbol/functions.h"

#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/bits.h"

#define FUNCTIONS_BACK 64u /* how far back to look for a function that encloses others */

/* The full symbol table if there is one, else the dynamic one. */
static Elf_Scn *functions_section(Elf *elf, GElf_Shdr *ret_header)
{
	Elf_Scn *found = NULL;
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_size == 0 ||
		    header.sh_entsize == 0)
			continue;
		if (header.sh_type == SHT_SYMTAB || (header.sh_type == SHT_DYNSYM && !found)) {
			*ret_header = header;
			found = section;
			if (header.sh_type == SHT_SYMTAB)
				break;
		}
	}
	return found;
}

/* Bytes up to the end of the symbol's section; 0 if that is not known either. */
static uint64_t functions_rest(Elf *elf, const GElf_Sym *symbol)
{
	Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) ||
	    symbol->st_value - header.sh_addr >= header.sh_size)
		return 0;
	return header.sh_size - (symbol->st_value - header.sh_addr);
}

static bool functions_entry_of(Elf *elf, const GElf_Sym *symbol, struct functions_entry *ret_entry)
{
	unsigned char kind = GELF_ST_TYPE(symbol->st_info);
	unsigned char bind = GELF_ST_BIND(symbol->st_info);

	if ((kind != STT_FUNC && kind != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_name == 0)
		return false;
	*ret_entry = (struct functions_entry){
		.address = symbol->st_value,
		.size = symbol->st_size ? symbol->st_size : functions_rest(elf, symbol),
		.name = symbol->st_name,
		.rank = bind == STB_GLOBAL ? 2 : bind == STB_WEAK,
		.guessed = symbol->st_size == 0,
	};
	return true;
}

static int functions_compare(const void *a, const void *b)
{
	const struct functions_entry *x = a, *y = b;

	if (x->address != y->address)
		return bits_compare(x->address, y->address);
	if (x->rank != y->rank)
		return bits_compare(x->rank, y->rank);
	return x->name < y->name ? 1 : x->name > y->name ? -1 : 0;
}

int functions_init(struct functions *functions, Elf *elf)
{
	GElf_Shdr header;
	Elf_Scn *section = functions_section(elf, &header);
	Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
	size_t count;

	if (!data)
		return -ENOENT;
	count = (size_t)bits_min(header.sh_size / header.sh_entsize, FUNCTIONS_MAX);
	*functions = (struct functions){.elf = elf, .strings = header.sh_link};
	functions->list = calloc(count ? count : 1, sizeof(*functions->list));
	if (!functions->list)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		GElf_Sym symbol;

		if (!gelf_getsym(data, (int)i, &symbol))
			break; /* the header promises more than there is */
		if (functions_entry_of(elf, &symbol, &functions->list[functions->count]))
			functions->count++;
	}
	qsort(functions->list, functions->count, sizeof(*functions->list), functions_compare);
	return 0;
}

void functions_deinit(struct functions *functions)
{
	free(functions->list);
	*functions = (struct functions){0};
}

const char *functions_find(const struct functions *functions, uint64_t address)
{
	size_t low = 0, high = functions->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions->list[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; back < FUNCTIONS_BACK && low > 0; back++, low--) {
		const struct functions_entry *entry = &functions->list[low - 1];

		if (address - entry->address < entry->size && (!entry->guessed || back == 0))
			return elf_strptr(functions->elf, functions->strings, entry->name);
	}
	return NULL;
}
