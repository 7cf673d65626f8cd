/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The cost of calls from Python, measured by Python itself (python/ttmem/_bench.py), once per row
 * and round in a fresh process, because the stack mode is chosen once per process.
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "cli/bench/bench-measure.h"

#define BENCH_PYTHON_LIVE 1000u

static struct {
	const char *name;
	const char *stacks; /* TTMEM_STACKS */
	struct bench_row *row;
} bench_python_rows[] = {
	{"python_event", "off", NULL},
	{"python_event_frames", "python", NULL},
	{"python_event_merged", "auto", NULL},
};

/*
 * The package is beside this program, installed or in the build tree, or where the caller's
 * PYTHONPATH says.
 */
static void bench_python_path(void)
{
	const char *before =
		getenv("PYTHONPATH"); /* NOLINT(concurrency-mt-unsafe): no thread sets */
	char self[PATH_MAX], path[3 * PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (length < 0)
		return;
	self[length] = '\0';
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	if (snprintf(path, sizeof(path), "%s/../lib/python:%s/../../python%s%s", self, self,
		     before ? ":" : "", before ? before : "") < (int)sizeof(path))
		setenv("PYTHONPATH", path, 1); /* NOLINT(concurrency-mt-unsafe): as above */
}

static void bench_python_open(struct bench *bench)
{
	if (!bench->has_python)
		return;
	bench_python_path();
	for (size_t i = 0; i < ARRAY_SIZE(bench_python_rows); i++)
		bench_python_rows[i].row =
			bench_row_add(bench, bench_python_rows[i].name, BENCH_PYTHON_LIVE);
}

static void bench_python_round(struct bench *bench)
{
	static const char *const arguments[] = {"python3", "-m", "ttmem._bench", NULL};
	double ns;

	for (size_t i = 0; bench->has_python && i < ARRAY_SIZE(bench_python_rows); i++) {
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): the threads of a round have ended */
		setenv("TTMEM_STACKS", bench_python_rows[i].stacks, 1);
		if (bench_children_numbers("python3", arguments, 1, &ns))
			bench_measure_add(&bench_python_rows[i].row->means, ns);
		else
			bench_note(bench, "%s is missing: python3 cannot run the package ttmem",
				   bench_python_rows[i].name);
	}
	setenv("TTMEM_STACKS", "off", 1); /* NOLINT(concurrency-mt-unsafe): as above */
}

static void bench_python_close(void)
{
}

const struct bench_part bench_python = {
	.open = bench_python_open,
	.round = bench_python_round,
	.close = bench_python_close,
};
