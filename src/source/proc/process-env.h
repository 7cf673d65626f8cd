/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of the library in a process, seen from outside: what its environment said when it
 * started, what it has mapped, which limits it has. It serves to explain why there is nothing to
 * see; no figure comes from here. What may not be read is marked as such.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/proc/proc.h"

enum process_env_wish {
	PROCESS_ENV_UNSAID = 0,
	PROCESS_ENV_ON = 1,
	PROCESS_ENV_OFF = 2,
};

#define PROCESS_ENV_PATH 256u

struct process_env {
	bool environment_seen;
	enum process_env_wish tracking; /* at its start: later changes are not visible */
	enum process_env_wish stacks;
	bool daemon_unwanted; /* TTMEM_SOCKET=none */

	bool maps_seen;
	char library[PROCESS_ENV_PATH]; /* path of libttmem.so, "" = not there */
	bool library_replaced;          /* on disk, since it was loaded */
	bool has_metal;                 /* tt-metal's own library */
	bool has_metal_front;           /* libttmem-metal.so, which reports for it */
	ino_t book;                     /* a book is mapped; 0 = none */

	uint64_t file_limit; /* UINT64_MAX = none */
	uint64_t address_limit;
};

/*
 * Returns 0, or -ENOENT or -ESRCH if there is no such process; what is not visible is no failure.
 */
int process_env_read(const struct proc *proc, uint32_t pid, struct process_env *ret_inside);

/* The value of a variable when the process started. False: it was not set, is too long or not visible. */
bool process_env_find(const struct proc *proc, uint32_t pid, const char *name, char *ret_value,
		      size_t size);

/*
 * The parsers, for tests. The environment is words terminated by NUL; a line of maps has no
 * newline.
 */
void process_env_parse_environment(const char *bytes, size_t length, struct process_env *inside);
void process_env_parse_mapping(const char *line, struct process_env *inside);
void process_env_parse_limits(const char *text, struct process_env *inside);
