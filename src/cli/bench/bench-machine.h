/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The machine that the figures are of: what makes them differ from those of another one. */

#include <stdint.h>
#include <stdio.h>

struct emit;

struct bench_machine {
	char processor[96]; /* as the kernel names it; "" = it does not */
	uint64_t processors;
	uint64_t cache_l2; /* bytes; 0 = unknown */
	uint64_t cache_l3;
	char kernel[96];
	char clock_source[32]; /* of the kernel */
	const char *clock;     /* of a book's events */
	uint64_t page;
	char huge_pages[16];        /* "always", "madvise", ...; "" = unknown */
	char huge_pages_shared[16]; /* likewise for shared memory, where books are */
};

void bench_machine_look(struct bench_machine *ret_machine);
void bench_machine_text(const struct bench_machine *machine, FILE *out);
void bench_machine_json(const struct bench_machine *machine, struct emit *json);
