/* SPDX-License-Identifier: Apache-2.0 */

/* Which function an address is in, in files with the symbols that each case wants. */

#include "symbol/functions.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/testing/unit-memory.h"
#include "base/testing/unit.h"

#define TEXT 1u /* the section that functions are in: addresses 0x1000 to 0x1fff */
#define SYMBOLS_MAX 200u

struct symbol {
	const char *name;
	uint64_t address, size;
	unsigned char bind, type;
	uint16_t section;
};

#define FUNCTION(name, address, size)                                 \
	{                                                             \
		(name), (address), (size), STB_GLOBAL, STT_FUNC, TEXT \
	}

static int file = -1;
static Elf *elf;
static struct functions functions;

/* A table of symbols and the strings for it; @is_empty: it has no entries. */
static void add_table(Elf *made, const struct symbol *symbols, size_t count, uint32_t type,
		      bool is_empty)
{
	static GElf_Sym entries[4][SYMBOLS_MAX];
	static char strings[4][4096];
	static size_t tables;
	GElf_Sym *list = entries[tables % 4];
	char *text = strings[tables++ % 4];
	Elf_Scn *string_section = elf_newscn(made), *section = elf_newscn(made);
	Elf_Data *string_data = elf_newdata(string_section), *data = elf_newdata(section);
	GElf_Shdr header;
	size_t used = 1;

	memset(text, 0, sizeof(strings[0]));
	memset(list, 0, sizeof(entries[0]));
	assert(count < SYMBOLS_MAX && string_data && data);
	for (size_t i = 0; i < count; i++) {
		list[i] = (GElf_Sym){
			.st_name = symbols[i].name ? (GElf_Word)used : 0,
			.st_value = symbols[i].address,
			.st_size = symbols[i].size,
			.st_info = (unsigned char)GELF_ST_INFO(symbols[i].bind, symbols[i].type),
			.st_shndx = symbols[i].section,
		};
		if (symbols[i].name) {
			strcpy(text + used, symbols[i].name);
			used += strlen(symbols[i].name) + 1;
		}
	}
	*string_data = (Elf_Data){.d_buf = text,
				  .d_size = used,
				  .d_align = 1,
				  .d_version = EV_CURRENT,
				  .d_type = ELF_T_BYTE};
	*data = (Elf_Data){.d_buf = list,
			   .d_size = is_empty ? 0 : count * sizeof(*list),
			   .d_align = 8,
			   .d_version = EV_CURRENT,
			   .d_type = ELF_T_SYM};
	assert(gelf_getshdr(string_section, &header));
	header.sh_type = SHT_STRTAB;
	assert(gelf_update_shdr(string_section, &header));
	assert(gelf_getshdr(section, &header));
	header.sh_type = type;
	header.sh_entsize = sizeof(GElf_Sym);
	header.sh_link = (GElf_Word)elf_ndxscn(string_section);
	assert(gelf_update_shdr(section, &header));
}

/* A file with a section for functions, but no symbols yet. */
static Elf *begin(void)
{
	Elf *made;
	GElf_Ehdr header = {.e_machine = EM_X86_64, .e_type = ET_DYN, .e_version = EV_CURRENT};
	GElf_Shdr text;
	Elf_Scn *section;
	Elf_Data *data;

	assert(elf_version(EV_CURRENT) != EV_NONE);
	file = memfd_create("elf", MFD_CLOEXEC);
	assert(file >= 0);
	made = elf_begin(file, ELF_C_WRITE, NULL);
	assert(made && gelf_newehdr(made, ELFCLASS64));
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	assert(gelf_update_ehdr(made, &header));
	section = elf_newscn(made);
	data = elf_newdata(section);
	assert(data && elf_ndxscn(section) == TEXT);
	*data = (Elf_Data){.d_size = 0x1000, .d_align = 1, .d_version = EV_CURRENT};
	assert(gelf_getshdr(section, &text));
	text.sh_type = SHT_NOBITS;
	text.sh_addr = 0x1000;
	assert(gelf_update_shdr(section, &text));
	return made;
}

/* Ends the file, and reads it. */
static int read_it(Elf *made)
{
	assert(elf_update(made, ELF_C_WRITE) > 0 && elf_end(made) == 0);
	elf = elf_begin(file, ELF_C_READ, NULL);
	assert(elf);
	return functions_init(&functions, elf);
}

static void end(void)
{
	functions_deinit(&functions);
	assert(elf_end(elf) == 0 && close(file) == 0);
}

static void make(const struct symbol *symbols, size_t count)
{
	Elf *made = begin();

	add_table(made, symbols, count, SHT_SYMTAB, false);
	assert(read_it(made) == 0);
}

/* Whether an address is in that function; NULL = in none. */
static bool is_in(uint64_t address, const char *name)
{
	const char *found = functions_find(&functions, address);

	return found && name ? strcmp(found, name) == 0 : found == name;
}

UNIT(a_function_ends_where_its_size_says)
{
	static const struct symbol symbols[] = {
		FUNCTION("b", 0x1200, 0x80),
		FUNCTION("a", 0x1100, 0x10),
		FUNCTION("c", 0x1280, 1),
	};

	make(symbols, 3);
	assert(functions.count == 3);
	assert(is_in(0x10ff, NULL) && is_in(0x1100, "a") && is_in(0x110f, "a"));
	assert(is_in(0x1110, NULL) && is_in(0x11ff, NULL) && is_in(0x1200, "b"));
	assert(is_in(0x127f, "b") && is_in(0x1280, "c") && is_in(0x1281, NULL));
	assert(is_in(0, NULL) && is_in(UINT64_MAX, NULL));
	end();
}

UNIT(what_is_no_function_is_left_out)
{
	static const struct symbol symbols[] = {
		{"data", 0x1100, 16, STB_GLOBAL, STT_OBJECT, TEXT},
		{"elsewhere", 0x1200, 16, STB_GLOBAL, STT_FUNC, SHN_UNDEF},
		{NULL, 0x1300, 16, STB_GLOBAL, STT_FUNC, TEXT},
		{"chosen", 0x1400, 16, STB_GLOBAL, STT_GNU_IFUNC, TEXT},
		{"label", 0x1500, 16, STB_LOCAL, STT_NOTYPE, TEXT},
	};

	make(symbols, 5);
	assert(functions.count == 1 && is_in(0x1400, "chosen"));
	assert(is_in(0x1100, NULL) && is_in(0x1200, NULL) && is_in(0x1300, NULL));
	end();
}

UNIT(without_a_size_a_function_ends_at_the_next_one_or_its_section)
{
	static const struct symbol symbols[] = {
		FUNCTION("a", 0x1000, 0),
		FUNCTION("b", 0x1100, 0x10),
		FUNCTION("c", 0x1f00, 0),
		{"none", 0x3000, 0, STB_GLOBAL, STT_FUNC, 77},     /* a section that is not there */
		{"beyond", 0x2000, 0, STB_GLOBAL, STT_FUNC, TEXT}, /* of its section */
	};

	make(symbols, 5);
	assert(is_in(0x1000, "a") && is_in(0x10ff, "a") && is_in(0x1100, "b"));
	assert(is_in(0x1110, NULL)); /* not "a" again */
	assert(is_in(0x1f00, "c") && is_in(0x1fff, "c") && is_in(0x2000, NULL));
	assert(is_in(0x3000, NULL));
	end();
}

UNIT(of_several_names_the_global_one_is_used)
{
	static const struct symbol symbols[] = {
		{"local", 0x1100, 16, STB_LOCAL, STT_FUNC, TEXT},
		{"global", 0x1100, 16, STB_GLOBAL, STT_FUNC, TEXT},
		{"weak", 0x1100, 16, STB_WEAK, STT_FUNC, TEXT},
		{"weak2", 0x1200, 16, STB_WEAK, STT_FUNC, TEXT},
		{"local2", 0x1200, 16, STB_LOCAL, STT_FUNC, TEXT},
		FUNCTION("first", 0x1300, 16),
		FUNCTION("second", 0x1300, 16),
		FUNCTION("third", 0x1300, 16),
	};

	make(symbols, 8);
	assert(is_in(0x1100, "global") && is_in(0x1200, "weak2") && is_in(0x1300, "first"));
	end();
}

/* Up to 64 functions before the address are looked at. */
UNIT(a_function_may_enclose_others)
{
	static struct symbol symbols[100];
	static char names[100][8];

	symbols[0] = (struct symbol)FUNCTION("outer", 0x1000, 0x800);
	for (size_t i = 1; i < 100; i++) {
		snprintf(names[i], sizeof(names[i]), "f%zu", i);
		symbols[i] = (struct symbol)FUNCTION(names[i], 0x1000 + 8 * i, 4);
	}
	make(symbols, 100);
	assert(is_in(0x1008, "f1") && is_in(0x100c, "outer") && is_in(0x1004, "outer"));
	assert(is_in(0x1000 + 8 * 63 + 4, "outer"));
	assert(is_in(0x1000 + 8 * 64 + 4, NULL) && is_in(0x1000 + 8 * 64, "f64"));
	end();
}

UNIT(the_full_table_is_preferred)
{
	static const struct symbol few[] = {FUNCTION("dynamic", 0x1100, 16)};
	static const struct symbol all[] = {FUNCTION("full", 0x1100, 16)};
	Elf *made = begin();

	add_table(made, few, 1, SHT_DYNSYM, false);
	add_table(made, all, 1, SHT_SYMTAB, false);
	assert(read_it(made) == 0 && is_in(0x1100, "full"));
	end();
	made = begin();
	add_table(made, all, 1, SHT_SYMTAB, false);
	add_table(made, few, 1, SHT_DYNSYM, false);
	assert(read_it(made) == 0 && is_in(0x1100, "full"));
	end();
	/* Without it, or if it is empty, the dynamic one must do; of two, the first. */
	made = begin();
	add_table(made, all, 1, SHT_SYMTAB, true);
	add_table(made, few, 1, SHT_DYNSYM, false);
	add_table(made, all, 1, SHT_DYNSYM, false);
	assert(read_it(made) == 0 && is_in(0x1100, "dynamic"));
	end();
	made = begin();
	assert(read_it(made) == -ENOENT);
	end();
}

static int try_to_read(void *context)
{
	int r = functions_init(&functions, elf);

	(void)context;
	if (r == 0)
		assert(is_in(0x1100, "a"));
	functions_deinit(&functions);
	return r;
}

UNIT(without_memory_there_are_no_functions)
{
	static const struct symbol symbols[] = {FUNCTION("a", 0x1100, 0x10)};

	make(symbols, 1);
	functions_deinit(&functions);
	assert(functions.count == 0 && is_in(0x1100, NULL));
	assert(unit_memory_sweep(try_to_read, NULL) == 1);
	end();
}
