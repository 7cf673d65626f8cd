/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Demangles C++ function names in call stacks. For crafted names the demangler can take very long
 * or overflow the stack, and a log may come from anybody. So the symbol worker process does it, and
 * names that are not done in time stay as they are in the log.
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cli/common/must.h"
#include "legacy/analyze/analyze.h"
#include "symbol/demangle.h"
#include "symbol/symbolizer.h"

#define NAMES_NS UINT64_C(5000000000)
#define NAMES_BYTES_MAX (64l << 20) /* of all stacks together */
#define NAMES_KNOWN 8192u           /* the same few thousand come again and again */

struct names {
	struct symbolizer *symbolizer;
	uint64_t deadline_ns;
	struct {
		char *encoded, *decoded;
	} known[NAMES_KNOWN];
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

static struct names *names_free(struct names *names)
{
	if (!names)
		return NULL;
	symbolizer_free(names->symbolizer);
	for (size_t i = 0; i < NAMES_KNOWN; i++) {
		free(names->known[i].encoded);
		free(names->known[i].decoded);
	}
	free(names);
	return NULL;
}

static struct names *names_new(void)
{
	const struct symbolizer_config config = {.stop_fd = -1, .served_max = UINT32_MAX};
	struct names *names = calloc(1, sizeof(*names));

	if (!names || symbolizer_new(&names->symbolizer, &config) < 0)
		return names_free(names);
	names->deadline_ns = clock_ns(CLOCK_MONOTONIC) + NAMES_NS;
	return names;
}

/* Without memory, time or an answer the name stays mangled. */
static void names_decode_one(struct names *names, const char *encoded, size_t length, FILE *out)
{
	uint64_t hash = hash_bytes(encoded, length);
	char **known = &names->known[hash % NAMES_KNOWN].encoded;
	char **decoded = &names->known[hash % NAMES_KNOWN].decoded;
	char text[DEMANGLE_NAME_MAX];
	int r = 0;

	if (!*known || strcmp(*known, encoded) != 0) {
		if (clock_ns(CLOCK_MONOTONIC) <= names->deadline_ns)
			r = symbolizer_demangle(names->symbolizer, encoded, text);
		else
			r = -ETIMEDOUT;
		free(*known);
		free(*decoded);
		*known = strdup(encoded);
		*decoded = strdup(r < 0 ? encoded : text);
	}
	fputs(*decoded ? *decoded : encoded, out);
}

/* The stack with its names decoded, ended by NUL. */
static void names_decode(struct names *names, const char *stack, FILE *out)
{
	const char *at = stack, *name;

	while ((name = names_find(stack, at))) {
		char encoded[DEMANGLE_NAME_MAX];
		size_t length = 0;

		while (names_is_part(name[length]))
			length++;
		fwrite(at, 1, (size_t)(name - at), out);
		at = name + length;
		if (length >= sizeof(encoded)) {
			fwrite(name, 1, length, out);
			continue;
		}
		memcpy(encoded, name, length);
		encoded[length] = '\0';
		names_decode_one(names, encoded, length, out);
	}
	fputs(at, out);
	fputc('\0', out);
}

/* Assigns the texts to their rows. */
static void names_assign(struct analyze *analyze, char *text, size_t length)
{
	const struct log_analysis_result *result = &analyze->result;
	char *end = text + length;

	for (size_t i = 0; i < result->site_count; i++) {
		char *nul = memchr(text, '\0', (size_t)(end - text));

		if (!names_find(result->sites[i].stack, result->sites[i].stack))
			continue;
		if (!nul)
			return;
		result->sites[i].stack = text;
		text = nul + 1;
	}
}

static bool names_needed(const struct log_analysis_result *result)
{
	for (size_t i = 0; i < result->site_count; i++) {
		if (names_find(result->sites[i].stack, result->sites[i].stack))
			return true;
	}
	return false;
}

void analyze_names(struct analyze *analyze)
{
	const struct log_analysis_result *result = &analyze->result;
	struct names *names;
	size_t length = 0;
	FILE *out;

	if (!names_needed(result))
		return;
	out = must_have(open_memstream(&analyze->names, &length));
	names = names_new();
	for (size_t i = 0; names && i < result->site_count && ftell(out) < NAMES_BYTES_MAX; i++) {
		if (names_find(result->sites[i].stack, result->sites[i].stack))
			names_decode(names, result->sites[i].stack, out);
	}
	names_free(names);
	/* All or nothing, if memory runs out. */
	if (fclose(out) == 0)
		names_assign(analyze, analyze->names, length);
}
