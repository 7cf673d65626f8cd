/* SPDX-License-Identifier: Apache-2.0 */

/* Lines that count in megabytes: circular buffers, kernels, and what ended processes had. */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "legacy/analyze/log-reader-private.h"

#define COUNTERS_MB (1024.0 * 1024.0)
#define COUNTERS_MB_MAX 1e9 /* a petabyte: more is no size */

enum {
	COUNTERS_TYPE_CB = 5,
	COUNTERS_TYPE_KERNEL = 6,
};

/* Half of the last of six digits. */
static double counters_rounded(double mb)
{
	double digit = 1e-5;

	while (mb >= digit * 1e6)
		digit *= 10;
	while (mb > 0 && mb < digit * 1e5)
		digit /= 10;
	return digit / 2;
}

/*
 * The size that was printed with six digits. Several have the same ones; sizes are multiples of some power of
 * two, so it is the one with the highest.
 */
static uint64_t counters_bytes_of(double mb)
{
	/* A little more than half a digit: a size that lies between two of them was rounded, too. */
	double half = counters_rounded(mb) * (1 + 1e-6);
	double low = (mb - half) * COUNTERS_MB, high = (mb + half) * COUNTERS_MB;

	if (mb == 0)
		return 0;
	for (uint32_t shift = 52; shift > 0; shift--) {
		double step = (double)(UINT64_C(1) << shift);
		uint64_t least = (uint64_t)(low / step) + 1;

		if ((double)least * step <= high)
			return least << shift;
	}
	return (uint64_t)(mb * COUNTERS_MB + 0.5);
}

/* "X MB", as a C++ stream prints a number: six digits, perhaps with an exponent. */
static bool counters_eat_mb(const char **at, double *ret_mb)
{
	const char *p = *at;
	char *end;
	double mb;

	/* Not all that strtod() knows: no blanks, signs, names or hexadecimal. */
	if (*p < '0' || *p > '9' || p[1] == 'x' || p[1] == 'X')
		return false;
	mb = strtod(p, &end);
	p = end;
	if (!(mb >= 0 && mb < COUNTERS_MB_MAX) || !log_reader_eat(&p, " MB"))
		return false;
	*at = p;
	*ret_mb = mb;
	return true;
}

/* "Device D: +X MB (Total: Y MB)". */
static bool counters_counted(const char *at, struct log_reader_event *event)
{
	bool is_alloc = event->kind == LOG_READER_COUNTED_ALLOC;
	double mb;

	event->has_size = true;
	if (!log_reader_eat(&at, "evice ") || !log_reader_eat_device(&at, &event->device) ||
	    !log_reader_eat(&at, is_alloc ? ": +" : ": -") || !counters_eat_mb(&at, &mb))
		return false;
	event->size = counters_bytes_of(mb);
	/* Old servers had totals below zero, which are none. */
	event->has_total = log_reader_eat(&at, " (Total: ") && counters_eat_mb(&at, &mb);
	if (event->has_total) {
		event->total = counters_bytes_of(mb);
		event->total_rounded = (uint64_t)(counters_rounded(mb) * 2 * COUNTERS_MB) + 1;
	}
	return true;
}

/* "[CB_ALLOC] Device ...", "[KERNEL_LOAD] SORT kernel on Device ...". */
int log_reader_counters(const char *line, struct log_reader_event *ret_event)
{
	static const struct {
		const char *word;
		enum log_reader_kind kind;
		uint32_t type;
	} words[] = {
		{"[CB_ALLOC] ", LOG_READER_COUNTED_ALLOC, COUNTERS_TYPE_CB},
		{"[CB_FREE] ", LOG_READER_COUNTED_FREE, COUNTERS_TYPE_CB},
		{"[KERNEL_LOAD] ", LOG_READER_COUNTED_ALLOC, COUNTERS_TYPE_KERNEL},
		{"[KERNEL_UNLOAD] ", LOG_READER_COUNTED_FREE, COUNTERS_TYPE_KERNEL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *at = strstr(line, words[i].word);

		if (!at)
			continue;
		ret_event->format = LOG_READER_SERVER;
		ret_event->kind = words[i].kind;
		ret_event->type = words[i].type;
		at = strpbrk(at + strlen(words[i].word), "dD");
		while (at && strncmp(at + 1, "evice ", 6) != 0)
			at = strpbrk(at + 1, "dD");
		return at && counters_counted(at + 1, ret_event) ? LOG_READER_TAKEN
								 : LOG_READER_DAMAGED;
	}
	return LOG_READER_OTHER;
}

/* "Removed n buffers (X MB) from PID P". */
int log_reader_removed(const char *at, struct log_reader_event *ret_event)
{
	double mb;

	ret_event->kind = LOG_READER_REMOVED;
	ret_event->has_size = ret_event->has_pid = true;
	if (!log_reader_eat_number(&at, &ret_event->count))
		return LOG_READER_OTHER; /* other programs remove things, too */
	if (log_reader_eat(&at, " CBs ("))
		ret_event->type = COUNTERS_TYPE_CB;
	else if (log_reader_eat(&at, " kernels ("))
		ret_event->type = COUNTERS_TYPE_KERNEL;
	else if (!log_reader_eat(&at, " buffers ("))
		return LOG_READER_OTHER;
	if (!counters_eat_mb(&at, &mb) || !log_reader_eat(&at, ") from PID ") ||
	    !log_reader_eat_small(&at, &ret_event->pid))
		return LOG_READER_DAMAGED;
	ret_event->size = counters_bytes_of(mb);
	return LOG_READER_TAKEN;
}
