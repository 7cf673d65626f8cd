/* SPDX-License-Identifier: Apache-2.0 */

/* How often books are searched for, by clocks that this file sets. */

#include "source/books/book-source.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "source/books/scan.h"
#include "source/host/testing/host-testing.h"
#include "source/source.h"

/* 0: the kernel decides. */
static uint64_t monotonic_ns, cpu_ns;

/* In place of libc's. Every look at the processor's time takes a millisecond of it. */
int clock_gettime(clockid_t id, struct timespec *tp)
{
	if (monotonic_ns && id == CLOCK_MONOTONIC) {
		*tp = clock_timespec(monotonic_ns);
		return 0;
	}
	if (cpu_ns && id == CLOCK_THREAD_CPUTIME_ID) {
		*tp = clock_timespec(cpu_ns);
		cpu_ns += NS_PER_MS;
		return 0;
	}
	return (int)syscall(SYS_clock_gettime, id, tp);
}

/* Searches so far, after another look. */
static uint64_t look(struct source *source)
{
	static const struct snapshot_request request = {0};
	struct snapshot *snapshot = snapshot_new(1);

	assert(snapshot && source_collect(source, &request, snapshot) == 0);
	snapshot_free(snapshot);
	return book_source_scan(source)->pass;
}

UNIT(the_next_search_waits_in_proportion_to_the_last_one)
{
	struct source *source;

	host_testing_start();
	assert(setenv("TTMEM_SOCKET", unit_path("none"), 1) == 0);
	assert(book_source_new(&source) == 0);
	book_source_pace(source, 1);
	monotonic_ns = 1000 * NS_PER_S;
	cpu_ns = 1000 * NS_PER_S; /* of all searches before; the next one takes a few ms */
	assert(look(source) == 1);
	monotonic_ns += NS_PER_MS * BOOK_SEARCH_SHARE / 2;
	assert(look(source) == 1);
	monotonic_ns += 60 * NS_PER_S;
	assert(look(source) == 2);
	source_free(source);
}
