/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /metrics. The number of lines is bounded whatever processes do: the largest have rows of their
 * own, the others are added up by device. Names are those of docs/http.md.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "model/tally.h"
#include "web/export/exposition.h"

#define METRICS_PROCESSES_MAX 1000u  /* with rows of their own, whatever is configured */
#define METRICS_PROCESS_ROWS_MAX 64u /* devices of one process with rows of their own */
#define METRICS_DEVICES_MAX 4096u    /* devices with rows of their own, less the driver's */

struct exposition_origin;
struct snapshot;
struct health;
struct web_provider;

/* The server's own counters. */
struct metrics_server {
	uint64_t answers[6]; /* by the first digit of the status */
	uint64_t subscribers;
	uint64_t subscribers_dropped;
	uint64_t thrown_out; /* connections */
};

struct metrics_input {
	const struct snapshot *snapshot;
	const struct health *health; /* read before the snapshot was taken, see web.h */
	const struct metrics_server *server;
	uint32_t processes;
	const struct exposition_origin *origin; /* for OTLP */
	const struct web_provider *provider;    /* for what needs rows; NULL = it is left out */
};

/* @last: the counters written last time; owned by the caller, initially zero. */
void metrics_write(const struct metrics_input *input, struct tally *last,
		   enum exposition_format format, FILE *out);

/* The labels "device" and "uid" of a sample; TALLY_OTHER is a device too. */
void metrics_label_device(struct exposition *to, uint32_t device, uint64_t unique_id);
