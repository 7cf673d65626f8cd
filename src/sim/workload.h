/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Workloads: programs as people run them, played on simulated devices.
 *
 * A workload ends early when told to and frees whatever it allocated, except where the fault is the
 * point. The context determines it entirely: the same context makes the same calls, except for how
 * long it runs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sim/device.h"
#include "sim/random.h"
#include "sim/sim-card.h"

struct workload_context {
	const char *card;      /* see sim-card.c; NULL = the workload's own choice */
	uint32_t first_device; /* number of its first chip, which also distinguishes boards */
	uint32_t workers; /* processes of a server; 0 = as many as the card has chips, at least 2 */
	uint32_t leaking_worker; /* which worker of a server forgets to free, from 1; 0 = none */
	uint32_t scale;          /* sizes and counts are divided by this; 0 and 1 = real sizes */
	uint32_t run_ms;         /* duration; 0 = one short round without any sleep */
	uint32_t pace_ms;        /* sleep between steps */
	struct sim_share share;  /* of its card's memory, if others use the card too */
	uint64_t seed;
	volatile int *stop; /* the workload ends soon when it is not 0; may be NULL */
	/* private, set by workload_run() */
	uint64_t deadline_ns;
	struct sim_random random;
	int lifeline; /* fd that ends the workload when its other end is closed, or -1 */
};

struct workload {
	const char *name;
	const char *description;
	const char *card; /* the card it is usually played on */
	bool has_fault;   /* leaves an incident or a leak behind */
	int (*run)(struct workload_context *context);
};

const struct workload *workload_find(const char *name);
const struct workload *workload_at(uint32_t index);
int workload_run(const struct workload *workload, struct workload_context *context);

/* The rest is for the workloads themselves. */

/* The devices that a workload uses. */
struct workload_devices {
	struct sim_device device[SIM_CARD_CHIPS_MAX];
	uint32_t n;
};

int workload_open(const struct workload_context *context, uint32_t max,
		  struct workload_devices *ret_devices);
void workload_close(struct workload_devices *devices);

uint64_t workload_now_ns(void);
bool workload_ended(const struct workload_context *context);
bool workload_again(const struct workload_context *context);
void workload_pause(const struct workload_context *context);
uint64_t workload_size(const struct workload_context *context, uint64_t size, uint64_t page_size);
uint32_t workload_count(const struct workload_context *context, uint32_t count, uint32_t least);
void workload_phase(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The table's entries, each in a file of its name (the small faults share faults.c). */
int workload_llm(struct workload_context *context);
int workload_training(struct workload_context *context);
int workload_server(struct workload_context *context);
int workload_mesh(struct workload_context *context);
int workload_leak(struct workload_context *context);
int workload_double_free(struct workload_context *context);
int workload_fragmentation(struct workload_context *context);
