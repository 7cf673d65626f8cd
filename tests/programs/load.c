/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A steady load: a given number of events per second, in batches with pauses between them, until
 * end of input or a signal. Missed batches are not made up for, so the counters show the rate that
 * was really reached.
 *
 *	load EVENTS_PER_SECOND LIVE [DEVICE[-LAST] [NAME]]
 *
 * Allocates LIVE buffers first, on each device up to the last, prints "ok", then frees and allocates
 * in turn on the first of them. 0 events: only holds them. With TTMEM_STACKS the first buffers have
 * 32 different stacks, as deep as those of a small program.
 */

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <ttmem/ttmem.h>

#define LOAD_SIZE UINT64_C(4096)
#define LOAD_DEPTH 5u
#define LOAD_BATCHES 20u /* per second */
#define LOAD_SECOND UINT64_C(1000000000)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * LOAD_SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_until(uint64_t due_ns)
{
	struct timespec due = {
		.tv_sec = (time_t)(due_ns / LOAD_SECOND),
		.tv_nsec = (long)(due_ns % LOAD_SECOND),
	};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
}

static int has_ended(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	return poll(&input, 1, 0) > 0;
}

struct load_buffer {
	uint32_t device;
	uint64_t number;
	const char *name;
};

static void load_alloc(const struct load_buffer *buffer, unsigned int depth);

/* Two ways to the next function; what is behind the call keeps it from being a jump. */
__attribute__((noinline)) static void load_left(const struct load_buffer *buffer,
						unsigned int depth)
{
	load_alloc(buffer, depth);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void load_right(const struct load_buffer *buffer,
						 unsigned int depth)
{
	load_alloc(buffer, depth);
	__asm__ volatile("" ::: "memory");
}

/* The digits of its number are the path to a buffer. */
__attribute__((noinline)) static void load_alloc(const struct load_buffer *buffer,
						 unsigned int depth)
{
	if (depth == 0)
		ttmem_alloc(buffer->device, TTMEM_DRAM, (buffer->number + 1) * LOAD_SIZE, LOAD_SIZE,
			    buffer->name);
	else if (buffer->number >> (depth - 1) & 1)
		load_left(buffer, depth - 1);
	else
		load_right(buffer, depth - 1);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	uint64_t rate, live, next = 0, due;
	uint32_t device, last;
	const char *name;
	char *end = NULL;

	if (argc < 3)
		return 2;
	rate = strtoull(argv[1], NULL, 0);
	live = strtoull(argv[2], NULL, 0);
	device = last = argc > 3 ? (uint32_t)strtoul(argv[3], &end, 0) : 0;
	if (end && *end == '-')
		last = (uint32_t)strtoul(end + 1, NULL, 0);
	name = argc > 4 ? argv[4] : "load";
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint64_t i = 0; i < live * (last - device + 1); i++) {
		const struct load_buffer buffer = {device + (uint32_t)(i / live), i % live, name};

		load_alloc(&buffer, LOAD_DEPTH);
	}
	puts("ok");
	fflush(stdout);
	if (rate == 0 || live == 0) {
		struct pollfd input = {.fd = 0, .events = POLLIN};

		poll(&input, 1, -1);
		return 0;
	}
	/* Spreads the processes over time. */
	due = now_ns() + (uint64_t)device * LOAD_SECOND / LOAD_BATCHES / 100;
	while (!has_ended()) {
		for (uint64_t i = 0; i < rate / LOAD_BATCHES / 2; i++) {
			uint64_t address = (next++ % live + 1) * LOAD_SIZE;

			ttmem_free(device, TTMEM_DRAM, address);
			ttmem_alloc(device, TTMEM_DRAM, address, LOAD_SIZE, name);
		}
		due += LOAD_SECOND / LOAD_BATCHES;
		if (due < now_ns())
			due = now_ns();
		else
			sleep_until(due);
	}
	return 0;
}
