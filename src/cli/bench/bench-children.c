/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Measurements that are possible only once per process, each in a fresh one: how long the first
 * event takes; how much memory a book, a device and a buffer need; for bench-stack.c, what events
 * with stacks cost. The child is this same program, run as "ttmem bench --child WHAT", which writes
 * one number per line.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/process/child.h"
#include "base/text.h"
#include "book/format/layout.h"
#include "cli/bench/bench-book.h"
#include "cli/bench/bench-load.h"
#include "cli/bench/bench-measure.h"

#define BENCH_CHILDREN_FIRST 100u /* fresh processes for the first event */
#define BENCH_CHILDREN_FIRST_QUICK 30u
#define BENCH_CHILDREN_DEVICES 16u
#define BENCH_CHILDREN_MESH_MAX 64u
#define BENCH_CHILDREN_MESH_LIVE 1000u
#define BENCH_CHILDREN_MESH_PAIRS 2048u
#define BENCH_CHILDREN_MESH_BATCHES 8u
#define BENCH_CHILDREN_HELD 100u

static struct bench_row *bench_children_row;

bool bench_children_numbers(const char *program, const char *const *arguments, uint32_t count,
			    double *ret_values)
{
	struct child_setup setup = {
		.program = program, .arguments = arguments, .input = -1, .is_foreground = true};
	struct child child = CHILD_NULL;
	uint32_t got = 0;
	FILE *answer;
	int fds[2];
	int r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	setup.output = fds[1];
	r = child_start(&child, NULL, &setup);
	close(fds[1]);
	answer = r == 0 ? fdopen(fds[0], "r") : NULL;
	while (answer && got < count && fscanf(answer, "%lf", &ret_values[got]) == 1)
		got++;
	if (answer)
		(void)fclose(answer); /* only read from */
	else
		close(fds[0]);
	(void)child_wait(&child, -1);
	return got == count && child.status == 0;
}

bool bench_children_ask(const char *what, const char *argument, uint32_t count, double *ret_values)
{
	const char *const arguments[] = {"ttmem", "bench", "--child", what, argument, NULL};

	return bench_children_numbers("/proc/self/exe", arguments, count, ret_values);
}

static void bench_children_memory(struct bench *bench)
{
	static const uint64_t sizes[] = {1000, 100000, 1000000};
	double values[2];
	char text[32];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, sizes[i]);
		if (bench_children_ask("buffers", text, 1, values))
			bench_figure_add(bench, "bytes_per_buffer", sizes[i], values[0], "B");
		else
			bench_note(bench, "bytes_per_buffer with %s live is missing", text);
	}
	if (bench_children_ask("devices", NULL, 2, values)) {
		bench_figure_add(bench, "resident_no_device", 0, values[0] / 1024, "KiB");
		bench_figure_add(bench, "resident_per_device", 0, values[1] / 1024, "KiB");
	} else {
		bench_note(bench, "resident_no_device and resident_per_device are missing");
	}
}

static void bench_children_open(struct bench *bench)
{
	bench_children_row = bench_row_add(bench, "first_event", 0);
	bench_children_memory(bench);
}

static void bench_children_round(struct bench *bench)
{
	unsigned int all = bench->is_quick ? BENCH_CHILDREN_FIRST_QUICK : BENCH_CHILDREN_FIRST;
	unsigned int share = (all + bench->rounds - 1) / bench->rounds;
	double value;

	for (unsigned int i = 0; i < share; i++) {
		if (!bench_children_ask("first", NULL, 1, &value))
			continue;
		bench_measure_add(&bench_children_row->means, value);
		bench_measure_add(&bench_children_row->samples, value);
	}
}

static void bench_children_close(void)
{
}

const struct bench_part bench_children = {
	.open = bench_children_open,
	.round = bench_children_round,
	.close = bench_children_close,
};

/* The first event includes the search for a daemon, though none will be found. */
static int bench_children_first(void)
{
	uint64_t from, to;

	/* There is no other thread. */
	setenv("TTMEM_SOCKET", "/nonexistent/ttmemd.sock", 1); /* NOLINT(concurrency-mt-unsafe) */
	from = bench_measure_ns();
	ttmem_alloc(0, TTMEM_DRAM, bench_load_address(0), bench_load_size(0), NULL);
	to = bench_measure_ns();
	printf("%" PRIu64 "\n", to - from);
	return 0;
}

static uint64_t bench_children_used(void)
{
	return bench_book_bytes() + bench_book_anonymous();
}

/* Whether everything that is to be measured was recorded. */
static bool bench_children_holds(uint32_t device, uint64_t live)
{
	struct ttmem_stats stats;

	return ttmem_stats(device, TTMEM_ANY, &stats) == 0 && stats.buffers == live;
}

static int bench_children_devices(void)
{
	uint64_t before, book, one, more;

	(void)bench_children_used(); /* so that what measuring itself needs is touched */
	before = bench_children_used();
	(void)ttmem_enabled(); /* creates the book */
	book = bench_children_used();
	/* The first device also touches the writer's page that lists 512 devices. */
	ttmem_alloc(BENCH_CHILDREN_DEVICES, TTMEM_DRAM, bench_load_address(0), bench_load_size(0),
		    NULL);
	one = bench_children_used();
	for (uint32_t i = 0; i < BENCH_CHILDREN_DEVICES; i++)
		ttmem_alloc(i, TTMEM_DRAM, bench_load_address(0), bench_load_size(0), NULL);
	if (!bench_children_holds(BENCH_CHILDREN_DEVICES - 1, 1))
		return 1;
	/*
	 * The first page of each ring is not counted: history grows with use and is not the cost of
	 * a device.
	 */
	more = (bench_children_used() - one) / BENCH_CHILDREN_DEVICES - BOOK_PAGE;
	printf("%" PRIu64 "\n%" PRIu64 "\n", book - before, more);
	return 0;
}

/* Growth for a device that has had events: its history is full, its graveyard is in use. */
static int bench_children_buffers(const char *text)
{
	uint64_t live, before;

	if (!text || text_parse_u64(text, &live) < 0 || live == 0 || live > UINT32_MAX)
		return 2;
	setenv("TTMEM_HISTORY", "1024", 1); /* NOLINT(concurrency-mt-unsafe) */
	for (uint32_t i = 0; i < 1024; i++) {
		ttmem_alloc(0, TTMEM_DRAM, bench_load_address(0), bench_load_size(0), NULL);
		ttmem_free(0, TTMEM_DRAM, bench_load_address(0));
	}
	(void)bench_children_used();
	before = bench_children_used();
	for (uint32_t i = 0; i < live; i++)
		ttmem_alloc(0, bench_load_type(i), bench_load_address(i), bench_load_size(i), NULL);
	if (!bench_children_holds(0, live))
		return 1;
	printf("%.2f\n", (double)(bench_children_used() - before) / (double)live);
	return 0;
}

/* Events on so many devices in turn, for "./dev bench --curve": ns for each of them. */
static int bench_children_mesh(const char *text)
{
	uint32_t devices[BENCH_CHILDREN_MESH_MAX];
	struct bench_load load;
	uint64_t count, from;

	if (!text || text_parse_u64(text, &count) < 0 || count == 0 || count > ARRAY_SIZE(devices))
		return 2;
	for (uint32_t i = 0; i < count; i++)
		devices[i] = i;
	if (bench_load_init(&load, devices, (uint32_t)count, 0, BENCH_CHILDREN_MESH_LIVE,
			    BENCH_CHILDREN_MESH_PAIRS) < 0)
		return 1;
	for (uint32_t batch = 0; batch < BENCH_CHILDREN_MESH_BATCHES; batch++) {
		bench_load_draw(&load, load.pairs, 1);
		from = bench_measure_busy_ns();
		for (size_t i = 0; i < load.pairs; i++) {
			uint32_t freed = load.script[i].freed, number = load.script[i].allocated;

			ttmem_free_mesh(devices, count, bench_load_type(freed),
					bench_load_address(freed));
			ttmem_alloc_mesh(devices, count, bench_load_type(number),
					 bench_load_address(number), bench_load_size(number), NULL);
		}
		printf("%.3f\n",
		       (double)(bench_measure_busy_ns() - from) / (double)(2 * count * load.pairs));
	}
	bench_load_deinit(&load);
	return 0;
}

/* A tracked process with a few buffers that stays until its standard input ends. */
static int bench_children_hold(void)
{
	char byte;

	for (uint32_t i = 0; i < BENCH_CHILDREN_HELD; i++)
		ttmem_alloc(0, bench_load_type(i), bench_load_address(i), bench_load_size(i), NULL);
	printf("%u\n", BENCH_CHILDREN_HELD);
	(void)fflush(stdout); /* nobody to tell if it fails */
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}

int bench_children_run(int argc, char **argv)
{
	const char *what = argc > 0 ? argv[0] : "";
	const char *argument = argc > 1 ? argv[1] : NULL;

	if (strcmp(what, "first") == 0)
		return bench_children_first();
	if (strcmp(what, "devices") == 0)
		return bench_children_devices();
	if (strncmp(what, BENCH_STACK_WHAT, strlen(BENCH_STACK_WHAT)) == 0)
		return bench_stack_run(what + strlen(BENCH_STACK_WHAT), argument);
	if (strcmp(what, "buffers") == 0)
		return bench_children_buffers(argument);
	if (strcmp(what, "mesh") == 0)
		return bench_children_mesh(argument);
	if (strcmp(what, "hold") == 0)
		return bench_children_hold();
	return 2;
}
