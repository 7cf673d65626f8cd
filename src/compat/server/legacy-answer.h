/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers to old clients, from a finished snapshot: numbers over all processes, native ones included, as
 * the old server counted. SYSTEM_MEMORY was part of l1_small there, and still is. What the driver knows
 * of devices comes from sysfs.
 */

#include <stdint.h>
#include <stdio.h>

#include "compat/wire/legacy-encode.h"

struct snapshot;

/* Longer answers to QUERY_ALL are cut, and say so. */
#define LEGACY_ANSWER_ROWS_MAX 4096u

/* Devices of the driver, by their number. */
struct legacy_answer_devices {
	uint32_t count;      /* 1 + the largest number */
	uint8_t arch[1024];  /* as the old protocol numbers them; 0 = not known */
	uint8_t known[1024]; /* there is one with this number */
};

/* What is under class/tenstorrent of TTMEM_SYS_ROOT or /sys. Without a driver there is nothing. */
void legacy_answer_read_devices(struct legacy_answer_devices *ret_devices);

void legacy_answer_query(const struct snapshot *snapshot, int32_t device,
			 struct legacy_answer *ret_answer);
void legacy_answer_info(const struct snapshot *snapshot,
			const struct legacy_answer_devices *devices, int32_t device,
			struct legacy_answer *ret_answer);

/* The text for QUERY_ALL, before legacy_encode_text(). Needs buffers. */
void legacy_answer_text(FILE *out, const struct snapshot *snapshot);

/* Records for the 24-byte request. Return: bytes. */
void legacy_answer_statistics(FILE *out, const struct snapshot *snapshot);
