/* SPDX-License-Identifier: Apache-2.0 */

/* What is decoded is what the C++ runtime says, for its own thousands of names and for difficult ones. */

#include "legacy/debug-log/debug-log-demangle.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/testing/unit.h"

static struct debug_log_demangle state;

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
	const char *found = debug_log_demangle(&state, name);
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

static const char *const known[][2] = {
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
	{"_Z2q2IKiEvRKT_PS1_PS2_", "void q2<int const>(int const&, int const*, int const*)"},
	{"_Z2q3IOiEvOT_RS1_", "void q3<int&&>(int&&, int&)"},
	{"_Z1fPViPK1A", "f(int volatile*, A const*)"},
	{"_ZZ3twovEN1L1fE_1v", "two()::L::f()"},
	{"_ZZ3twovEN1L1fE__12_v", "two()::L::f()"},
	{"_ZL2stv", "st()"},
	{"_Z2c4IJEEvv", "void c4<>()"},
	{"_ZZ3locvEN1M1N1gEZ3locvE1L", "loc()::M::N::g(loc()::L)"},
	{"_Z2p2IJilEEvDpP1BIT_EP1APS6_", "void p2<int, long>(B<int>*, B<long>*, A*, A**)"},
	{"_Z2p3IJi1AEEvDpRKT_RKS0_PS5_S6_",
	 "void p3<int, A>(int const&, A const&, A const&, A const*, A const&)"},
	{"_Z1fOA10_iPA9_c", "f(int (&&) [10], char (*) [9])"},
	{"_Z1fILin5ELc97ELh255EN1A5ColorEEvv",
	 "void f<-5, (char)97, (unsigned char)255, A::Color>()"},
	{"_Z2c1ILin5ELs3ELh255ELN1A5ColorE1ELxn9EEvv",
	 "void c1<-5, (short)3, (unsigned char)255, (A::Color)1, -9ll>()"},
	{"_Z1fIilcs1APS0_bfdjhmEvT9_T10_",
	 "void f<int, long, char, short, A, A*, bool, float, double, unsigned int, unsigned char, "
	 "unsigned long>(unsigned char, unsigned long)"},
	{"_ZNK1AltIiEEbRKT_", "bool A::operator< <int>(int const&) const"},
	{"_ZNKR1A2crEv", "A::cr() const &"},
	{"_ZN3TagB3newB1xC1Ev", "Tag[abi:new][abi:x]::Tag()"},
	{"_ZN2FnIFvi1AEE4callEiS0_", "Fn<void (int, A)>::call(int, A)"},
	{"_ZN1AC1IiEET_", "A::A<int>(int)"},
	{"_ZZ3locvENKUlZ3locvE1LiE0_clES_i",
	 "loc()::{lambda(loc()::L, int)#2}::operator()(loc()::L, int) const"},
	{"_ZZ1fvENUt_1gEv", "f()::{unnamed type#1}::g()"},
	{"_Z2s3P1APS0_PS1_PS2_PS3_PS4_PS5_PS6_PS7_PS8_PS9_PSA_PSB_SB_S9_S0_",
	 "s3(A*, A**, A***, A****, A*****, A******, A*******, A********, A*********, A**********, "
	 "A***********, A************, A*************, A************, A**********, A*)"},
};

UNIT(names_as_people_wrote_them)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const char *found = debug_log_demangle(&state, known[i][0]);

		assert(found && strcmp(found, known[i][1]) == 0);
	}
}

UNIT(the_beginning_of_a_name_is_decoded_as_the_runtime_does_or_refused)
{
	void *library = runtime();
	demangle_fn *demangle = (demangle_fn *)(uintptr_t)dlsym(library, "__cxa_demangle");
	char name[256];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		for (size_t length = 2; length < strlen(known[i][0]); length++) {
			(void)snprintf(name, sizeof(name), "%.*s", (int)length, known[i][0]);
			(void)compare(demangle, name);
		}
	}
	assert(dlclose(library) == 0);
}

/* With a name of @length x in place of the "%s". NULL: refused. */
static const char *decode_long(const char *shape, size_t length)
{
	static char part[DEBUG_LOG_DEMANGLE_TEXT + 64], name[sizeof(part) + 64];
	int digits = snprintf(part, sizeof(part), "%zu", length);
	const char *place = strstr(shape, "%s");

	memset(part + digits, 'x', length);
	part[(size_t)digits + length] = '\0';
	(void)snprintf(name, sizeof(name), "%.*s%s%s", (int)(place - shape), shape, part,
		       place + 2);
	return debug_log_demangle(&state, name);
}

/* Wherever the room for text ends, nothing is missing from what is decoded. */
UNIT(names_for_which_there_is_no_room_are_refused)
{
	static const char *const shapes[] = {
		"_Z%sv",
		"_Z1fP%s",
		"_Z1fO%s",
		"_Z1fRA3_K%s",
		"_Z1fPF%scE",
		"_Z1fI%sEvT_",
		"_ZN%s1fEv",
		"_ZN%sD1Ev",
		"_ZN1A%sEv",
		"_Z1fIJ%siEEvDpT_",
		"_ZZ1fvEN%s1gEv",
		"_ZZ%svEN1A1gEv",
		"_Z1fB%sv",
		"_Z1f1AI%sE",
		"_Z1fIL%s2EEvv",
		"_ZN1A1BI%sE1CEv",
		"_ZZ1fvENKUl%sE_clEv",
	};

	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		const char *text = decode_long(shapes[i], 1);
		size_t rest = 0, times = 0;

		assert(text);
		for (; *text; text++) {
			times += *text == 'x';
			rest += *text != 'x';
		}
		for (size_t parts = 1; parts < 8; parts++) {
			size_t most = DEBUG_LOG_DEMANGLE_TEXT / parts;

			for (size_t length = most - 40; length < most + 10; length++) {
				text = decode_long(shapes[i], length);
				assert(!text || strlen(text) == rest + times * length);
			}
		}
	}
}

static const char *const refused[] = {
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
	"_Z2q2IViEvRKT_PS1_PS2_",
	"_Z1fPFPFicElE",
	"_Z1fIiEDTplfp_Li1EET_",
	"_Z1fIJEEvDpT_",
	"_Z1fIJilEEvT_",
	"_Z1fIiEvDpT_",
	"_Z1fIJilEJsEEvDpP1BIJDpT_EE",
	"_Z1fIJilEEvDpDpT_",
	"_Z1fIiEvT0_",
	"_Z1fIiEvTA_",
	"_Z1fIiEvT",
	"_Z1fISt1BEvT_IiE",
	"_ZZ3locvENKUlT_E1_clIiEEDaS_",
	"_ZZN3Def1fEiEd_NKUlvE_clEv",
	"_ZZ1fvEs",
	"_ZZ1fvE1A_xv",
	"_ZZ1fvEN1A1gE__xv",
	"_Z1fILiE",
	"_Z1fILixEEvv",
	"_Z1fIL_Z1gvEEvv",
	"_Z1fIXT_EEvv",
	"_Z1fIiE",
	"_Z1fIEvv",
	"_ZNIiE1fEv",
	"_ZN1AT_1fEv",
	"_ZN1AS_1fEv",
	"_ZNEv",
	"_ZNC1Ev",
	"_ZNSsC1Ev",
	"_Z1fSsB1x",
	"_ZN1AUlvE1fEv",
	"_Z1fA3i",
	"_Z1fA3_FvvE",
	"_Z1fFFvvEvE",
	"_Z1fKFvvE",
	"_Z1fPFvi",
	"_Z1fVRi",
	"_Z1fB",
	"_Z1fB9x",
	"_ZSt",
	"_Z1fS1",
	"_Z1fSA_",
	"_Z1fPiS1_",
	"_Z1f1AS99999999999_",
};

UNIT(what_is_not_known_is_refused)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert(!debug_log_demangle(&state, refused[i]));
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
		assert(!debug_log_demangle(&state, name));
		name[2] = '1';
		name[3] = 'f';
		assert(!debug_log_demangle(&state, name));
	}
	/* Each argument is twice as long as the one before. */
	length = (size_t)snprintf(name, sizeof(name), "_Z1f1AIiiE");
	for (int i = 0; i < 40; i++)
		length += (size_t)snprintf(name + length, sizeof(name) - length, "1AIS%d_S%d_E",
					   i % 10, i % 10);
	(void)debug_log_demangle(&state, name); /* whatever it is, it ends */
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
