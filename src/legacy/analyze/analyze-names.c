/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Demangles C++ function names in call stacks. For crafted names the demangler can take very long
 * or overflow the stack, and a log may come from anybody. So the symbol worker process does it, and
 * names that are not done in time stay as they are in the log.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/common/must.h"
#include "legacy/analyze/analyze.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

#define NAMES_NS UINT64_C(5000000000)
#define NAMES_BYTES_MAX (64u << 20) /* of all stacks together */

struct names {
	struct symbolizer *symbolizer;
	uint64_t deadline_ns;
	struct pool *pool;
	struct map numbers; /* of encoded names; the same few thousand come again and again */
	const char **decoded;
	size_t capacity;
};

static bool names_is_part(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$';
}

/* The next encoded name at or after @text, NULL if there is none. */
static const char *names_find(const char *start, const char *text)
{
	for (const char *at = strstr(text, "_Z"); at; at = strstr(at + 1, "_Z")) {
		if (at == start || !names_is_part(at[-1]))
			return at;
	}
	return NULL;
}

/* Without time or an answer the name stays mangled. */
static const char *names_decoded(struct names *names, const char *name, size_t length)
{
	const char *encoded = must_have(pool_long_text(names->pool, name, length));
	uint32_t known = names->numbers.count;
	uint32_t number = must_number(&names->numbers, (uintptr_t)encoded, 0);
	char text[DEMANGLE_NAME_MAX];

	if (number <= known)
		return names->decoded[number - 1];
	must_grow(names->decoded, &names->capacity, number);
	names->decoded[number - 1] = encoded;
	if (length < sizeof(text) && clock_ns(CLOCK_MONOTONIC) <= names->deadline_ns &&
	    symbolizer_demangle(names->symbolizer, encoded, text) == 0)
		names->decoded[number - 1] = must_text(names->pool, text);
	return names->decoded[number - 1];
}

/* The stack with its names decoded. */
static const char *names_decode(struct names *names, const char *stack)
{
	CLEANUP_FREE char *text = NULL;
	const char *at = stack, *name;
	size_t size;
	FILE *out = must_have(open_memstream(&text, &size));

	while ((name = names_find(stack, at))) {
		size_t length = 0;

		while (names_is_part(name[length]))
			length++;
		fwrite(at, 1, (size_t)(name - at), out);
		fputs(names_decoded(names, name, length), out);
		at = name + length;
	}
	fputs(at, out);
	if (fclose(out) != 0)
		must_end();
	return must_have(pool_long_text(names->pool, text, size));
}

void analyze_names(struct log_analysis *analysis)
{
	struct names names = {.pool = &analysis->texts,
			      .deadline_ns = clock_ns(CLOCK_MONOTONIC) + NAMES_NS};
	const struct symbolizer_config config = {.stop_fd = -1, .served_max = UINT32_MAX};
	size_t bytes = 0;

	for (size_t i = 0; i < analysis->site_count && bytes < NAMES_BYTES_MAX; i++) {
		struct log_analysis_site *site = analysis->sites[i];

		if (!names_find(site->stack, site->stack))
			continue;
		if (!names.symbolizer && symbolizer_new(&names.symbolizer, &config) < 0)
			break;
		site->stack = names_decode(&names, site->stack);
		bytes += strlen(site->stack);
	}
	symbolizer_free(names.symbolizer);
	map_deinit(&names.numbers);
	free(names.decoded);
}
