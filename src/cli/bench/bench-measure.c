/* SPDX-License-Identifier: Apache-2.0 */

/* Clocks and medians for the benchmark. */

#include "cli/bench/bench-measure.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

#define BENCH_MEASURE_CALIBRATION_NS 20000000u
#define BENCH_MEASURE_TRIES 1001

static int bench_measure_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void bench_measure_add(struct bench_series *series, double value)
{
	double *values =
		array_grow(series->values, &series->capacity, series->count + 1, sizeof(*values));

	if (!values)
		return;
	series->values = values;
	values[series->count++] = value;
}

double bench_measure_quantile(struct bench_series *series, double share)
{
	size_t at;

	if (series->count == 0)
		return NAN;
	qsort(series->values, series->count, sizeof(*series->values), bench_measure_compare);
	at = (size_t)(share * (double)series->count);
	return series->values[at < series->count ? at : series->count - 1];
}

void bench_measure_calibrate(struct bench *bench)
{
	struct bench_series costs = {0};
	uint64_t ns = bench_measure_ns();
	uint64_t ticks = bench_measure_ticks();
	uint64_t now;

	do {
		now = bench_measure_ns();
	} while (now - ns < BENCH_MEASURE_CALIBRATION_NS);
	bench->ticks_per_ns = (double)(bench_measure_ticks() - ticks) / (double)(now - ns);

	for (int i = 0; i < BENCH_MEASURE_TRIES; i++) {
		uint64_t from = bench_measure_ticks();
		uint64_t to = bench_measure_ticks();

		bench_measure_add(&costs, (double)(to - from) / bench->ticks_per_ns);
	}
	bench->timer_ns = bench_measure_quantile(&costs, 0.5);
	free(costs.values);
}

double bench_measure_span(const struct bench *bench, uint64_t from, uint64_t to)
{
	double span = (double)(to - from) / bench->ticks_per_ns - bench->timer_ns;

	return span > 0 ? span : 0;
}
