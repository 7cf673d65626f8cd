/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a process stands to the library, seen from outside: what its environment said when it started,
 * what it has mapped, which limits it lives under. For explaining why there is nothing to see; no figure
 * comes from here. What may not be read is said to be so.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/proc/proc.h"

enum inside_wish {
	INSIDE_UNSAID = 0,
	INSIDE_ON = 1,
	INSIDE_OFF = 2,
};

#define INSIDE_PATH 256u

struct inside {
	bool environment_seen;
	enum inside_wish tracking; /* as it started: what it changed since cannot be seen */
	bool wants_stacks;
	bool daemon_unwanted; /* TTMEM_SOCKET=none */

	bool maps_seen;
	char library[INSIDE_PATH]; /* path of libttmem.so, "" = not there */
	bool library_replaced;     /* on disk, since it was loaded */
	bool has_metal;            /* tt-metal's own library */
	ino_t book;                /* a book is mapped; 0 = none */

	uint64_t file_limit; /* UINT64_MAX = none */
	uint64_t address_limit;
};

/* 0, or -ENOENT, -ESRCH if there is no such process; what cannot be seen is no failure. */
int inside_read(const struct proc *proc, uint32_t pid, struct inside *ret_inside);

/* The parsers, for tests. The environment is words ended by NUL; a line of maps has no newline. */
void inside_parse_environment(const char *bytes, size_t length, struct inside *inside);
void inside_parse_mapping(const char *line, struct inside *inside);
void inside_parse_limits(const char *text, struct inside *inside);
