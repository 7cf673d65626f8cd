/* SPDX-License-Identifier: Apache-2.0 */

/* What is decoded is what the C++ runtime says, for its own thousands of names and for difficult ones. */

#include "compat/oldlog/oldlog-demangle.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing/unit.h"

static struct oldlog_demangle state;

typedef char *demangle_fn(const char *name, char *buffer, size_t *length, int *status);

static void *runtime(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		unit_skip("there is no libstdc++.so.6");
	return library;
}

/* Return: whether it was decoded. */
static bool compare(demangle_fn *demangle, const char *name)
{
	const char *found = oldlog_demangle(&state, name);
	char *expected;
	int status;

	if (!found)
		return false;
	expected = demangle(name, NULL, NULL, &status);
	if (!expected || strcmp(found, expected) != 0)
		fprintf(stderr, "%s\n%s\n%s\n", name, found, expected ? expected : "-");
	assert(expected && strcmp(found, expected) == 0);
	free(expected);
	return true;
}

UNIT(names_as_people_wrote_them)
{
	static const char *const names[][2] = {
		{"_Z4takem", "take(unsigned long)"},
		{"_ZN5model4loadImEEvT_", "void model::load<unsigned long>(unsigned long)"},
		{"_ZNK1A1fERKSsz", "A::f(std::string const&, ...) const"},
		{"_ZN2tt8tt_metal6Buffer6createEPNS0_7IDeviceEmmNS0_10BufferTypeE",
		 "tt::tt_metal::Buffer::create(tt::tt_metal::IDevice*, unsigned long, "
		 "unsigned long, tt::tt_metal::BufferType)"},
		{"_ZN1AC2EPFviE", "A::A(void (*)(int))"},
		{"_ZN1AD1Ev", "A::~A()"},
		{"_Z1fRA4_KcPPFvvE", "f(char const (&) [4], void (**)())"},
		{"_Z1fIJilEEvDpOT_", "void f<int, long>(int&&, long&&)"},
		{"_Z1fIRiEvOT_", "void f<int&>(int&)"},
		{"_ZN12_GLOBAL__N_14workESt8functionIFbiEE",
		 "(anonymous namespace)::work(std::function<bool (int)>)"},
		{"_ZZN1A1fEvENKUliE_clEi", "A::f()::{lambda(int)#1}::operator()(int) const"},
		{"_ZlsRSoRK1A", "operator<<(std::ostream&, A const&)"},
		{"_Z1fILb1ELj3EEvSt5arrayIiLm4EE", "void f<true, 3u>(std::array<int, 4ul>)"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *found = oldlog_demangle(&state, names[i][0]);

		assert(found && strcmp(found, names[i][1]) == 0);
	}
}

UNIT(what_is_not_known_is_refused)
{
	static const char *const names[] = {
		"main",
		"",
		"_",
		"_Z",
		"_ZN",
		"_ZTV1A",
		"_ZGVZ1fvE1x",
		"_Z1x",
		"_ZN1A1xE",
		"_Z9",
		"_Z1fIiEvDTcl1gfp_EE",
		"_Z1fM1AFvvE",
		"_ZN1AcviEv",
		"_Z1fT_",
		"_Z1fS_",
		"_Z1fvE",
		"_Z1fv.cold",
		"_Z99999999999999999999f",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert(!oldlog_demangle(&state, names[i]));
}

UNIT(deep_and_long_names_are_refused)
{
	static const char steps[] = "PZNIJKFA";
	static char name[100000];
	size_t length;

	for (const char *step = steps; *step; step++) {
		memset(name, *step, sizeof(name) - 1);
		name[0] = '_';
		name[1] = 'Z';
		assert(!oldlog_demangle(&state, name));
		name[2] = '1';
		name[3] = 'f';
		assert(!oldlog_demangle(&state, name));
	}
	/* Each argument is twice as long as the one before. */
	length = (size_t)snprintf(name, sizeof(name), "_Z1f1AIiiE");
	for (int i = 0; i < 40; i++)
		length += (size_t)snprintf(name + length, sizeof(name) - length, "1AIS%d_S%d_E",
					   i % 10, i % 10);
	(void)oldlog_demangle(&state, name); /* whatever it is, it ends */
}

/* The table that the loader uses has as many entries as its hash table's last chain reaches. */
static uint32_t count_symbols(const uint32_t *hash)
{
	const uint32_t *buckets = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chains = buckets + hash[0];
	uint32_t last = 0;

	for (uint32_t i = 0; i < hash[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	while (last >= hash[1] && !(chains[last - hash[1]] & 1))
		last++;
	return last + 1;
}

UNIT(names_of_the_runtime_are_decoded_as_it_does)
{
	void *library = runtime();
	demangle_fn *demangle = (demangle_fn *)(uintptr_t)dlsym(library, "__cxa_demangle");
	const ElfW(Sym) *symbols = NULL;
	const uint32_t *hash = NULL;
	const char *strings = NULL;
	struct link_map *map;
	uint32_t functions = 0, decoded = 0;

	assert(demangle && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_SYMTAB)
			symbols = (const void *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_STRTAB)
			strings = (const char *)entry->d_un.d_ptr;
		else if (entry->d_tag == DT_GNU_HASH)
			hash = (const void *)entry->d_un.d_ptr;
	}
	assert(symbols && strings && hash);
	for (uint32_t i = 1; i < count_symbols(hash); i++) {
		const char *name = strings + symbols[i].st_name;

		if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || strncmp(name, "_ZT", 3) == 0 ||
		    strncmp(name, "_ZGT", 4) == 0 || strncmp(name, "_Z", 2) != 0)
			continue;
		functions++;
		decoded += compare(demangle, name);
	}
	assert(functions > 1000 && decoded > functions / 100 * 97);
	assert(dlclose(library) == 0);
}
