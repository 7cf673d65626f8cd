/* SPDX-License-Identifier: Apache-2.0 */

/* The table of workloads, and what all of them use: devices, time, scale and phases. */

#include "sim/workload.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <ttmem/ttmem.h>

#define NS_PER_MS UINT64_C(1000000)
#define NAP_MS 20u /* how long a workload may sleep without checking whether it should end */

static const struct workload workloads[] = {
	{"llm", "an 8B language model answers requests", "n300", false, workload_llm},
	{"training", "training steps of a 1B model", "n150", false, workload_training},
	{"server", "a server that forks workers, one device each", "n300", false, workload_server},
	{"mesh", "one model sharded over all chips of a galaxy", "galaxy", false, workload_mesh},
	{"leak", "a prompt cache that never evicts", "p150", true, workload_leak},
	{"double_free", "a buffer freed by two owners", "n150", true, workload_double_free},
	{"fragmentation", "an allocation that fails though enough is free", "n150", true,
	 workload_fragmentation},
};

#define WORKLOAD_COUNT (sizeof(workloads) / sizeof(workloads[0]))

/**
 * workload_find() - look a workload up by its name
 * @name: the name
 *
 * Return: the workload, or NULL if there is none of that name.
 */
const struct workload *workload_find(const char *name)
{
	for (size_t i = 0; i < WORKLOAD_COUNT; i++) {
		if (name && strcmp(workloads[i].name, name) == 0)
			return &workloads[i];
	}
	return NULL;
}

/**
 * workload_at() - go through all workloads
 * @index: from 0 upwards
 *
 * Return: the workload, or NULL after the last one.
 */
const struct workload *workload_at(uint32_t index)
{
	return index < WORKLOAD_COUNT ? &workloads[index] : NULL;
}

/**
 * workload_run() - play a workload until it ends or is stopped
 * @workload: which
 * @context: how; only the part above "private" must be filled in
 *
 * Return: 0; -EINVAL if there is no such card or too few device numbers are left for its chips;
 * -ENOMEM if the model does not fit the card; another negative errno if the system refused
 * something.
 */
int workload_run(const struct workload *workload, struct workload_context *context)
{
	if (!context->card)
		context->card = workload->card;
	context->deadline_ns = workload_now_ns() + context->run_ms * NS_PER_MS;
	context->random.state = context->seed;
	context->lifeline = -1;
	return workload->run(context);
}

/**
 * workload_open() - open the chips of the context's card
 * @context: the context
 * @max: at most this many
 * @ret_devices: where to put them
 *
 * Return: 0, or a negative errno.
 */
int workload_open(const struct workload_context *context, uint32_t max,
		  struct workload_devices *ret_devices)
{
	const struct sim_card *card = sim_card_find(context->card);
	uint32_t n;
	int r;

	if (!card || context->first_device >= TTMEM_DEVICE_COUNT)
		return -EINVAL;
	n = card->chips < max ? card->chips : max;
	if (n > TTMEM_DEVICE_COUNT - context->first_device)
		return -EINVAL;

	*ret_devices = (struct workload_devices){0};
	for (uint32_t i = 0; i < n; i++) {
		r = sim_device_init(&ret_devices->device[i], card, context->first_device, i,
				    context->first_device + i, &context->share);
		if (r < 0) {
			workload_close(ret_devices);
			return r;
		}
		ret_devices->n++;
	}
	return 0;
}

/**
 * workload_close() - close the devices
 * @devices: may be all zero
 */
void workload_close(struct workload_devices *devices)
{
	while (devices->n)
		sim_device_deinit(&devices->device[--devices->n]);
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t workload_now_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* the clock always exists */
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/**
 * workload_ended() - whether to stop at once, even inside a round
 * @context: the context
 *
 * Return: true if the workload was told to stop, its parent has died, or its time is over.
 */
bool workload_ended(const struct workload_context *context)
{
	if (context->stop && *context->stop)
		return true;
	if (context->lifeline >= 0) {
		struct pollfd lifeline = {.fd = context->lifeline, .events = POLLIN};

		if (poll(&lifeline, 1, 0) > 0)
			return true;
	}
	return context->run_ms && workload_now_ns() >= context->deadline_ns;
}

/**
 * workload_again() - whether to begin another round
 * @context: the context
 *
 * Return: true if there is time for one.
 */
bool workload_again(const struct workload_context *context)
{
	return context->run_ms && !workload_ended(context);
}

/**
 * workload_pause() - sleep between two steps
 * @context: the context; gives the duration. Ends soon after the workload should.
 */
void workload_pause(const struct workload_context *context)
{
	uint32_t left = context->run_ms ? context->pace_ms : 0;

	while (left && !workload_ended(context)) {
		uint32_t nap = left < NAP_MS ? left : NAP_MS;
		struct timespec time = {.tv_nsec = (long)(nap * NS_PER_MS)};

		(void)nanosleep(&time, NULL); /* a signal may end it early, which is fine */
		left -= nap;
	}
}

/**
 * workload_size() - a size in the context's scale
 * @context: the context
 * @size: the real number of bytes
 * @page_size: the result is a whole number of pages of this size, at least one
 *
 * Return: the bytes to use.
 */
uint64_t workload_size(const struct workload_context *context, uint64_t size, uint64_t page_size)
{
	uint64_t pages = size / (context->scale ? context->scale : 1) / page_size;

	return (pages ? pages : 1) * page_size;
}

/**
 * workload_count() - a number of things in the context's scale
 * @context: the context
 * @count: the real number
 * @least: at least this many
 *
 * Return: the number to use.
 */
uint32_t workload_count(const struct workload_context *context, uint32_t count, uint32_t least)
{
	uint32_t scaled = count / (context->scale ? context->scale : 1);

	return scaled > least ? scaled : least;
}

/* Pushes a phase with a printf()-style name. */
void workload_phase(const char *format, ...)
{
	char name[64];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(name, sizeof(name), format, args); /* cut if too long */
	va_end(args);
	ttmem_phase_push(name);
}
