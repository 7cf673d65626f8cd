/* SPDX-License-Identifier: Apache-2.0 */

/* Names that the runtime decodes, names that are too long for it, and invalid names. */

#include "symbol/demangle.h"

#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"

#define LONG "a_part_of_a_model_with_a_name_that_says_everything_about_it"

static char got[DEMANGLE_NAME_MAX];

static const char *decoded(const char *name)
{
	memset(got, 'x', sizeof(got));
	demangle_name(name, got, sizeof(got));
	return got;
}

UNIT(short_names_are_demangled)
{
	char text[8];

	assert(strcmp(decoded("_ZN2tt6Buffer4loadEv"), "tt::Buffer::load()") == 0);
	assert(strcmp(decoded("main"), "main") == 0);
	assert(strcmp(decoded("_Znonsense"), "_Znonsense") == 0);
	demangle_name("_ZN2tt6Buffer4loadEv", text, sizeof(text));
	assert(strcmp(text, "tt::Buf") == 0);
}

/*
 * f<first, then @count types, last>(), and what the runtime would return if it were short enough.
 */
static void nest(int count, const char *first, const char *first_decoded, const char *last,
		 const char *last_decoded)
{
	char name[DEMANGLE_NAME_MAX], want[DEMANGLE_NAME_MAX];
	int n = snprintf(name, sizeof(name), "_Z4loadI%s", first);
	int w = snprintf(want, sizeof(want), "void load<%s", first_decoded);

	for (int i = 0; i < count; i++) {
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%zu" LONG "%02d",
			      strlen(LONG) + 2, i);
		w += snprintf(want + w, sizeof(want) - (size_t)w, ", " LONG "%02d", i);
	}
	n += snprintf(name + n, sizeof(name) - (size_t)n, "%sEvv", last);
	w += snprintf(want + w, sizeof(want) - (size_t)w, ", %s>()", last_decoded);
	assert((size_t)n < sizeof(name) && (size_t)w < sizeof(want));
	if (strcmp(decoded(name), want) != 0)
		fprintf(stderr, "%s\n%s\n%s\n", name, got, want);
	assert(strcmp(got, want) == 0);
}

UNIT(long_names_are_demangled)
{
	nest(3, "i", "int", "i", "int");
	for (int count = 20; count < 60; count += 13) {
		nest(count, "i", "int", "S0_", LONG "00");
		nest(count, "N12_GLOBAL__N_11aE", "(anonymous namespace)::a", "8Elevator",
		     "Elevator");
		/* Numbers that are not the length of an identifier: array sizes and constants. */
		nest(count, "A70_i", "int [70]", "Lj61E", "61u");
		nest(count, "5Model", "Model", "LN3foo3barE7E", "(foo::bar)7");
	}
}

UNIT(names_that_cannot_be_demangled_stay)
{
	char name[2 * DEMANGLE_NAME_MAX];

	memset(name, 'P', sizeof(name));
	memcpy(name, "_Z", 2);
	name[3000] = '\0';
	assert(strcmp(decoded(name), name) == 0);
	/* A name beyond the length limit, and one that contains our mark. */
	memset(name, 'a', sizeof(name));
	memcpy(name, "_Z6000", 6);
	name[6006] = '\0';
	assert(strlen(decoded(name)) == DEMANGLE_NAME_MAX - 1 && memcmp(got, name, 4095) == 0);
	memcpy(name,
	       "_Z3\1"
	       "00",
	       6);
	name[2000] = '\0';
	assert(strcmp(decoded(name), name) == 0);
}
