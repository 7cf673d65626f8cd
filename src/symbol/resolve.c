/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finds the unit of debug information that contains the address, then the functions around the
 * address, and makes a frame for each. The line of the innermost frame is that of the instruction;
 * the line of every outer frame is the call line that the inlined function records.
 */

#include "symbol/resolve.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "symbol/demangle.h"
#include "symbol/resolve-private.h"

/* The source line of an instruction. The library owns the text. */
struct resolve_place {
	const char *file; /* NULL = not known */
	uint32_t line;
};

static const char *resolve_string(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static Dwarf_Word resolve_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
		return 0;
	return value;
}

/* Some compilers omit the address index: then each unit is searched. */
static bool resolve_unit(Dwarf *dwarf, uint64_t address, Dwarf_Die *ret_unit)
{
	Dwarf_CU *unit = NULL;

	if (dwarf_addrdie(dwarf, address, ret_unit))
		return true;
	while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, ret_unit, NULL) == 0) {
		if (dwarf_haspc(ret_unit, address) > 0)
			return true;
	}
	return false;
}

static struct resolve_place resolve_line(Dwarf_Die *unit, uint64_t address)
{
	struct resolve_place place = {0};
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	int number = 0;

	if (!line)
		return place;
	place.file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		place.line = (uint32_t)number;
	return place;
}

static struct resolve_place resolve_call(Dwarf_Die *unit, Dwarf_Die *inlined)
{
	struct resolve_place place = {
		.line = (uint32_t)bits_min(resolve_number(inlined, DW_AT_call_line), INT32_MAX),
	};
	Dwarf_Word index = resolve_number(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t count;

	if (dwarf_getsrcfiles(unit, &files, &count) == 0 && index < count)
		place.file = dwarf_filesrc(files, index, NULL, NULL);
	return place;
}

/* A relative name is relative to the compiler's working directory. */
static void resolve_put_file(Dwarf_Die *unit, const char *file, char *ret_text)
{
	const char *folder = file && file[0] != '/' ? resolve_string(unit, DW_AT_comp_dir) : NULL;

	if (file)
		(void)snprintf(ret_text, RESOLVE_TEXT_SIZE, "%s%s%s", folder ? folder : "",
			       folder ? "/" : "", file); /* cut if too long */
}

static void resolve_put(Dwarf_Die *unit, const char *function, const struct resolve_place *place,
			struct resolve_frame *ret_frame)
{
	*ret_frame = (struct resolve_frame){.line = place->file ? place->line : 0};
	if (function)
		demangle_name(function, ret_frame->function, sizeof(ret_frame->function));
	resolve_put_file(unit, place->file, ret_frame->file);
}

static const char *resolve_function(Dwarf_Die *die)
{
	const char *name = resolve_string(die, DW_AT_linkage_name);

	if (!name)
		name = resolve_string(die, DW_AT_MIPS_linkage_name);
	return name ? name : resolve_string(die, DW_AT_name);
}

/*
 * Split debug information describes inlined functions in another file, which is not opened here.
 * The line alone would be wrong.
 */
static bool resolve_is_split(Dwarf_Die *unit)
{
	return dwarf_tag(unit) == DW_TAG_skeleton_unit || dwarf_hasattr(unit, DW_AT_dwo_name) ||
	       dwarf_hasattr(unit, DW_AT_GNU_dwo_name);
}

static size_t resolve_by_debug(struct resolve_file *file, uint64_t address,
			       struct resolve_frame *ret_frames, size_t max)
{
	Dwarf_Die functions[RESOLVE_FRAMES_MAX], unit;
	struct resolve_place place;
	size_t count;

	if (!file->dwarf || !resolve_unit(file->dwarf, address, &unit) || resolve_is_split(&unit))
		return 0;
	place = resolve_line(&unit, address);
	count = scopes_find(&file->scopes, &unit, address, functions,
			    bits_min(max, RESOLVE_FRAMES_MAX));
	for (size_t i = 0; i < count; i++) {
		resolve_put(&unit, resolve_function(&functions[i]), &place, &ret_frames[i]);
		place = resolve_call(&unit, &functions[i]);
	}
	if (count == 0 && place.file && max > 0)
		resolve_put(&unit, NULL, &place, &ret_frames[count++]);
	return count;
}

static const char *resolve_by_table(struct resolve_file *file, uint64_t address)
{
	if (!file->elf)
		return NULL;
	if (!file->functions_read) {
		file->functions_read = true;
		(void)functions_init(&file->functions, file->elf); /* empty on error */
	}
	return functions_find(&file->functions, address);
}

size_t resolve_find(struct resolve *resolve, uint64_t address, struct resolve_frame *ret_frames,
		    size_t max)
{
	struct resolve_frame *outermost;
	const char *name;
	size_t count;

	if (max == 0)
		return 0;
	count = resolve_by_debug(&resolve->debug, address, ret_frames, max);
	if (count == 0)
		count = resolve_by_debug(&resolve->file, address, ret_frames, max);
	if (count > 0 && ret_frames[count - 1].function[0])
		return count;
	name = resolve_by_table(&resolve->debug, address);
	if (!name)
		name = resolve_by_table(&resolve->file, address);
	if (!name || !name[0])
		return count;
	if (count == 0)
		ret_frames[count++] = (struct resolve_frame){0};
	outermost = &ret_frames[count - 1];
	demangle_name(name, outermost->function, sizeof(outermost->function));
	return count;
}
