/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names of C++ functions in call stacks, as people wrote them. The decoder takes very long, or all of the
 * stack, for names that are made for it, and a log may come from anybody. So a child does it, with a limit,
 * and what it did not get done stays as it is in the log.
 */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "cli/analyze.h"
#include "symbol/demangle.h"

#define NAMES_SECONDS 5u
#define NAMES_MEMORY (UINT64_C(1) << 30)
#define NAMES_BYTES_MAX (64u << 20)     /* of all stacks together */
#define NAMES_ONE_MAX DEMANGLE_NAME_MAX /* of one decoded name; longer ones are cut */

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

static void names_decode(FILE *out, const char *stack)
{
	const char *at = stack, *name;

	while ((name = names_find(stack, at))) {
		char encoded[DEMANGLE_NAME_MAX], decoded[NAMES_ONE_MAX];
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
		demangle_name(encoded, decoded, sizeof(decoded));
		fputs(decoded, out);
	}
	fputs(at, out);
	fputc('\0', out);
	(void)fflush(out); /* what cannot be written is missing, as if it had not been done */
}

/* The child: each stack that has such names, ended by NUL, in the order of the rows. */
static _Noreturn void names_child(const struct analysis_result *result, int fd)
{
	const struct rlimit seconds = {NAMES_SECONDS, NAMES_SECONDS};
	const struct rlimit memory = {NAMES_MEMORY, NAMES_MEMORY};
	const struct rlimit none = {0, 0};
	FILE *out = fdopen(fd, "w");

	if (out && setrlimit(RLIMIT_CPU, &seconds) == 0 && setrlimit(RLIMIT_DATA, &memory) == 0 &&
	    setrlimit(RLIMIT_CORE, &none) == 0) {
		for (size_t i = 0; i < result->site_count; i++) {
			if (names_find(result->sites[i].stack, result->sites[i].stack))
				names_decode(out, result->sites[i].stack);
		}
	}
	_exit(0);
}

/* All that comes, as far as there is room for it; ends in NUL. NULL: no memory. */
static char *names_read(int fd, size_t *ret_length)
{
	CLEANUP_FREE char *text = NULL;
	size_t length = 0, capacity = 0;

	for (;;) {
		char *more = array_grow(text, &capacity, length + 65536, 1);
		ssize_t n;

		if (!more)
			return NULL;
		text = more;
		n = read(fd, text + length, capacity - length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || length + (size_t)n > NAMES_BYTES_MAX)
			break;
		length += (size_t)n;
	}
	*ret_length = length;
	return cleanup_steal(text);
}

/* Hands out what came back to the rows it belongs to. */
static void names_assign(struct analyze *analyze, char *text, size_t length)
{
	const struct analysis_result *result = &analyze->result;
	char *end = text + length;

	for (size_t i = 0; i < result->site_count; i++) {
		char *nul = memchr(text, '\0', (size_t)(end - text));

		if (!names_find(result->sites[i].stack, result->sites[i].stack))
			continue;
		if (!nul)
			return;
		analyze->stacks[i] = text;
		text = nul + 1;
	}
}

static bool names_needed(const struct analysis_result *result)
{
	for (size_t i = 0; i < result->site_count; i++) {
		if (names_find(result->sites[i].stack, result->sites[i].stack))
			return true;
	}
	return false;
}

int analyze_names(struct analyze *analyze)
{
	const struct analysis_result *result = &analyze->result;
	CLEANUP_CLOSE int reading = -1;
	size_t length = 0;
	int fds[2];
	pid_t child;

	if (!names_needed(result))
		return 0;
	analyze->stacks = calloc(result->site_count, sizeof(*analyze->stacks));
	if (!analyze->stacks)
		return -ENOMEM;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	reading = fds[0];
	child = fork();
	if (child == 0)
		names_child(result, fds[1]);
	(void)close(fds[1]); /* the child's */
	if (child < 0)
		return -errno;
	analyze->names = names_read(reading, &length);
	if (analyze->names)
		names_assign(analyze, analyze->names, length);
	/* It may still be at it, for a reader that has enough. */
	(void)close(cleanup_steal_fd(&reading));
	(void)child_reap(child); /* what it has said counts, not how it ended */
	return 0;
}

void analyze_names_deinit(struct analyze *analyze)
{
	free(analyze->stacks);
	free(analyze->names);
}

const char *analyze_stack(const struct analyze *analyze, uint32_t site)
{
	if (site == ANALYSIS_NONE)
		return NULL;
	if (analyze->stacks && analyze->stacks[site])
		return analyze->stacks[site];
	return analyze->result.sites[site].stack;
}
