/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The machine that the figures are of: what makes them differ from those of another one. */

#include <stdint.h>
#include <stdio.h>

#include "answers/fields.h"

/* NULL and 0 = unknown. */
struct bench_machine {
	const char *processor; /* as the kernel names it */
	uint64_t processors;
	uint64_t cache_l2; /* bytes */
	uint64_t cache_l3;
	const char *kernel;
	const char *clock;        /* of a book's events */
	const char *clock_source; /* of the kernel */
	uint64_t page;
	const char *huge_pages;        /* "always", "madvise", ... */
	const char *huge_pages_shared; /* for shared memory, where books are */
};

extern const struct field bench_machine_fields[];

void bench_machine_look(struct bench_machine *ret_machine);
void bench_machine_text(const struct bench_machine *machine, FILE *out);
