/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Counters that the kernel reads while their owner overwrites them: what it shows is of one moment, or it says that it is
 * not. src/book/read/block-test.c has every interleaving of the same code; this is the module as it runs.
 */

#include "node.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/format/layout.h"

#define RACE_DEVICE 40u
#define RACE_READS 3000

/* A book, and a thread of its owner. */
struct race {
	struct node_book book;
	struct book_hot *pair;
	pthread_t thread;
	bool stop;
};

/* Events as a library writes them: figures, then the number. */
static void *race_count(void *context)
{
	struct race *race = context;

	for (uint64_t n = 2; !__atomic_load_n(&race->stop, __ATOMIC_RELAXED); n++) {
		struct book_hot *hot = &race->pair[n % 2];

		hot->bytes = hot->peak = 64 * n;
		hot->buffers = hot->allocs = n;
		__atomic_store_n(&hot->number, n, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* An owner that lets nobody finish: nothing but numbers. */
static void *race_disturb(void *context)
{
	struct race *race = context;

	for (uint64_t n = 2; !__atomic_load_n(&race->stop, __ATOMIC_RELAXED); n++)
		__atomic_store_n(&race->pair[n % 2].number, n, __ATOMIC_RELEASE);
	return NULL;
}

static void race_start(struct race *race, void *(*run)(void *))
{
	struct book_shard *shard;

	race->stop = false;
	node_make_book(&race->book);
	node_write(&race->book, RACE_DEVICE, 0, 64, 1);
	shard = (struct book_shard *)(void *)(race->book.base + NODE_SHARDS +
					      RACE_DEVICE * NODE_SHARD_SIZE);
	race->pair = shard->hot[0];
	assert(pthread_create(&race->thread, NULL, run, race) == 0);
}

static void race_stop(struct race *race)
{
	__atomic_store_n(&race->stop, true, __ATOMIC_RELAXED);
	assert(pthread_join(race->thread, NULL) == 0);
	node_drop_book(&race->book);
}

UNIT(figures_of_a_busy_owner_are_of_one_moment_or_called_torn)
{
	unsigned long long bytes, buffers, peak, allocs, frees, first = 0, last = 0, torn = 0;
	struct race race;

	race_start(&race, race_count);
	for (int i = 0; i < RACE_READS; i++) {
		const char *line = strstr(node_text("/proc/driver/ttmem/totals"), "\nmemory 40 0 ");

		assert(line && sscanf(line, " memory 40 0 %llu %llu %llu %llu %llu 0", &bytes,
				      &buffers, &peak, &allocs, &frees) == 5);
		if (strncmp(strchr(line + 1, '\n') - 5, " torn", 5) == 0) {
			torn++;
			continue;
		}
		assert(bytes == 64 * buffers && peak == bytes && allocs == buffers && frees == 0);
		assert(allocs >= last); /* and never goes back */
		last = allocs;
		first = first ? first : allocs;
	}
	printf("events %llu to %llu, %llu of %d torn\n", first, last, torn, RACE_READS);
	assert(last > first && torn < RACE_READS);
	race_stop(&race);
}

/* Waits until @text is in the file. */
static void race_await(const char *path, const char *text)
{
	while (!strstr(node_text(path), text)) {
	}
}

UNIT(every_view_says_that_it_gave_up)
{
	struct ttmem_ioc_query_stats args;
	int node = node_open();
	struct race race;
	char path[64];

	race_start(&race, race_disturb);
	race_await("/proc/driver/ttmem/totals", " 0 torn\n");
	race_await("/proc/driver/ttmem/40/allocations", " inexact\n");
	race_await("/proc/driver/ttmem/40/stats", " inexact\n");
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", race.book.fd);
	race_await(path, "ttmem-inexact:\t1\n");
	do {
		args = (struct ttmem_ioc_query_stats){.argsz = sizeof(args), .device = RACE_DEVICE};
		assert(node_ioctl(node, TTMEM_IOC_QUERY_STATS, &args) == 0);
	} while (!(args.flags & TTMEM_STATS_INEXACT));
	race_stop(&race);
	close(node);
}
