/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How much of one kind of memory, as users count it: DRAM with TRACE, and L1 with L1_SMALL, CB and
 * KERNEL, because these share a memory.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct snapshot_device;
struct snapshot_driver_memory;
struct snapshot_part;
struct snapshot_process;

#define AMOUNT_ALL UINT32_MAX      /* all kinds together */
#define AMOUNT_ANYWHERE UINT32_MAX /* all devices */

/* @folded: TYPES_DRAM, TYPES_L1, TYPES_SYSTEM_MEMORY or AMOUNT_ALL. */
struct snapshot_memory amount_of_device(const struct snapshot_device *device, uint32_t folded);

struct snapshot_memory amount_of_part(const struct snapshot_part *part, uint32_t folded);

/* @row: the device's row in the snapshot, or AMOUNT_ANYWHERE. */
struct snapshot_memory amount_of_process(const struct snapshot_process *process, uint32_t row,
					 uint32_t folded);

/*
 * The living processes that hold the most, largest first, @most of them at most; only those whose
 * buffers are known if @with_buffers. Returns how many.
 */
size_t amount_largest(const struct snapshot *snapshot, bool with_buffers, size_t most,
		      const struct snapshot_process **ret_processes);

/* Of some processes. */
struct amount_choice {
	bool (*wants)(const void *context, const struct snapshot_process *process);
	const void *context;
};

/* The same with buffers, among those that are wanted: however large others are, they take no place. */
size_t amount_largest_of(const struct snapshot *snapshot, const struct amount_choice *choice,
			 size_t most, const struct snapshot_process **ret_processes);

/* A line about memory that the driver keeps, for tables: its name says that it is the driver's word. */
struct amount_driver_row {
	const char *name;
	uint64_t bytes;
	uint32_t count; /* 0 = not counted */
};

#define AMOUNT_DRIVER_ROWS 3u

/* What there is of it; returns how many rows. @memory may be NULL: not known. */
size_t amount_of_driver(const struct snapshot_driver_memory *memory,
			struct amount_driver_row ret_rows[AMOUNT_DRIVER_ROWS]);

/* What it takes: what its buffers occupy where that is known, otherwise their sizes, process by process. */
uint64_t amount_taken(const struct snapshot_memory *amount);

/* The fraction that is taken, 0 if the capacity is not known. */
double amount_share(const struct snapshot_memory *amount);

/* "4.8 GiB", with a sign in front if it is only a bound; into TEXT_NUMBER_SIZE bytes. */
const char *amount_text(const struct snapshot_memory *amount, char *ret_text);

/*
 * Why a small buffer may take much: "takes 24.0 KiB: 2.0 KiB in each of 12 banks". Empty where it is not known. Into
 * AMOUNT_TAKES_SIZE bytes.
 */
#define AMOUNT_TAKES_SIZE 128u
const char *amount_takes(const struct snapshot_buffer *buffer, char *ret_text);

/* " in 3 buffers", or nothing where tt-metal's regions count none; into TEXT_NUMBER_SIZE bytes. */
const char *amount_buffers(const struct snapshot_memory *amount, char *ret_text);
