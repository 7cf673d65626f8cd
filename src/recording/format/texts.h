/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What of a recording is JSON, for who writes and who reads it. */

#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"

struct namer_name;

/* RECORDING_HEAD */
struct recording_head {
	const char *program, *host, *kernel, *machine;
	uint64_t start_ns;   /* CLOCK_REALTIME */
	uint32_t recorder;   /* its pid */
	const char *command; /* of ttmem run, as one text and as words; NULL = none */
	const char *const *argv;
	size_t argc;
};

extern const struct field recording_head_fields[];

/* RECORDING_NAMES: files, each with its places, and their names, the innermost first. */
struct recording_place {
	const char *path, *build_id; /* of its file, while it is collected */
	uint64_t address;            /* in that */
	const struct namer_name *names;
	size_t count;
};

struct recording_names_file {
	const char *path, *build_id; /* in hexadecimal; "" = none */
	const struct recording_place *places;
	size_t count;
};

struct recording_names {
	const struct recording_names_file *files;
	size_t count;
};

extern const struct field recording_names_fields[];
