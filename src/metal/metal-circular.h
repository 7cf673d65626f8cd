/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Circular buffers. Those of cached programs lie over each other, so their sum means nothing: a device has
 * one entry of type CB, with the bytes that they take together. That is tt-metal's own account
 * (Device::get_total_cb_allocated(), since 0.70). Versions without it do not tell the end of a program
 * either: there it is the union of all address ranges that were told, each with the largest number of
 * cores, until the device or mesh is closed.
 *
 * How far they reach on a core is the farthest end of all programs that have some. It is not known where
 * a circular buffer was told outside of a program.
 */

#include <stdint.h>

struct metal_names;

struct metal_circular {
	uint64_t address;
	uint64_t size; /* on each core */
	uint32_t cores;
	const void *program; /* NULL = not known */
	uint64_t round;      /* what a program is told in a later one replaces the earlier */
};

/* On each core. */
struct metal_extent {
	uint64_t begin;
	uint64_t end; /* 0 = none */
};

/* Without the lock. */
void metal_circular_told(const struct metal_names *names, const void *device,
			 const struct metal_circular *cb);

/* A program's have ended on @device; which ones is not told. */
void metal_circular_ended(const struct metal_names *names, const void *device);

/* @program has none any more. Without the lock. */
void metal_circular_program_ended(const void *program);

/* Where the circular buffers of @program lie on the device with that number. With the lock held. */
struct metal_extent metal_circular_extent(const void *program, uint32_t id);

/* Asks for the accounts that have changed. */
void metal_circular_refresh(const struct metal_names *names);

/* With the lock held: @device or mesh is closed; NULL = all end. */
void metal_circular_close(const void *device);

/* In a forked child, with the lock held. */
void metal_circular_forget(void);
