/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reference measurements, and the cost of a disabled library.
 *
 * Tracking is enabled in this process, so the disabled library is a second copy, in a namespace of
 * its own (dlmopen). empty_call and off call into that same copy, through the same pointer, with
 * the same arguments, one after the other: ttmem_version(), which only returns a constant, and
 * ttmem_alloc(). They differ in nothing but the callee.
 */

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "cli/bench/bench-measure.h"

#define BENCH_CALLS_COUNT 400000u
#define BENCH_CALLS_GETPPID 20000u

/* Called as an application calls it: through a pointer that the compiler cannot see through. */
struct bench_calls_callee {
	void (*call)(uint32_t device, uint32_t type, uint64_t address, uint64_t size,
		     const char *name);
	struct bench_row *row;
};

static struct bench_calls_callee bench_calls_empty;
static struct bench_calls_callee bench_calls_off;
static struct bench_row *bench_calls_getppid;

/*
 * The copy has its own libc with its own environment, which may be the same array as ours: TTMEM=0
 * is set there, read by the copy's first call, and reset here.
 */
static bool bench_calls_switch_off(void *copy)
{
	int (*set)(const char *, const char *, int);
	int (*enabled)(void);
	bool is_off;

	*(void **)&set = dlsym(copy, "setenv");
	*(void **)&enabled = dlsym(copy, "ttmem_enabled");
	is_off = set && enabled && set("TTMEM", "0", 1) == 0 && enabled() == 0;
	setenv("TTMEM", "1", 1); /* NOLINT(concurrency-mt-unsafe): no other thread yet */
	return is_off;
}

static void *bench_calls_copy(void)
{
	void *symbol = dlsym(RTLD_DEFAULT, "ttmem_version");
	Dl_info info;

	if (!symbol || !dladdr(symbol, &info) || !info.dli_fname)
		return NULL;
	return dlmopen(LM_ID_NEWLM, info.dli_fname, RTLD_NOW | RTLD_LOCAL);
}

static void bench_calls_open(struct bench *bench)
{
	void *copy = bench_calls_copy(); /* kept: the library is never unloaded */

	if (copy && bench_calls_switch_off(copy)) {
		*(void **)&bench_calls_empty.call = dlsym(copy, "ttmem_version");
		*(void **)&bench_calls_off.call = dlsym(copy, "ttmem_alloc");
		bench_calls_empty.row = bench_row_add(bench, "empty_call", 0);
		bench_calls_off.row = bench_row_add(bench, "off", 0);
	} else {
		bench_note(bench, "empty_call and off are missing: no second copy of the library");
	}
	bench_calls_getppid = bench_row_add(bench, "getppid", 0);
}

static void bench_calls_batch(const struct bench *bench, const struct bench_calls_callee *callee,
			      unsigned int count)
{
	uint64_t from = bench_measure_busy_ns();

	for (unsigned int i = 0; i < count; i++) {
		callee->call(0, TTMEM_DRAM, 0x100000, 4096, NULL);
		compiler_barrier();
	}
	bench_measure_add(&callee->row->means, (double)(bench_measure_busy_ns() - from) / count);

	/* As for every row, though a timer can hardly resolve so short a call. */
	for (unsigned int i = 0; i < count / BENCH_SAMPLE_EVERY; i++) {
		uint64_t start = bench_measure_ticks();

		callee->call(0, TTMEM_DRAM, 0x100000, 4096, NULL);
		bench_measure_add(&callee->row->samples,
				  bench_measure_span(bench, start, bench_measure_ticks()));
	}
}

static void bench_calls_getppid_batch(struct bench *bench, unsigned int count)
{
	uint64_t from = bench_measure_busy_ns();

	for (unsigned int i = 0; i < count; i++)
		(void)getppid(); /* only its cost matters */
	bench_measure_add(&bench_calls_getppid->means,
			  (double)(bench_measure_busy_ns() - from) / count);

	for (unsigned int i = 0; i < count; i++) {
		uint64_t start;

		if (i % BENCH_SAMPLE_EVERY) {
			(void)getppid();
			continue;
		}
		start = bench_measure_ticks();
		(void)getppid();
		bench_measure_add(&bench_calls_getppid->samples,
				  bench_measure_span(bench, start, bench_measure_ticks()));
	}
}

static void bench_calls_round(struct bench *bench)
{
	unsigned int share = bench->is_quick ? 4 : 1;

	if (bench_calls_off.row) {
		bench_calls_batch(bench, &bench_calls_empty, BENCH_CALLS_COUNT / share);
		bench_calls_batch(bench, &bench_calls_off, BENCH_CALLS_COUNT / share);
	}
	bench_calls_getppid_batch(bench, BENCH_CALLS_GETPPID / share);
}

static void bench_calls_close(void)
{
}

const struct bench_part bench_calls = {
	.open = bench_calls_open,
	.round = bench_calls_round,
	.close = bench_calls_close,
};
