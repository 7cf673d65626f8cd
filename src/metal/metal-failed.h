/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tt-metal refuses: a buffer for which there is not enough memory, and a program whose circular buffers
 * would be larger than L1. Called while the exception is on its way, without the lock.
 */

#include <stdbool.h>

struct metal_names;

/*
 * @buffer has no address; @allocator would have given it one. @is_locked: the allocator's lock is still held, so
 * what is free cannot be asked.
 */
void metal_failed(const struct metal_names *names, const void *allocator, const void *buffer,
		  bool is_locked);

/* False: @program was refused for another reason. @device is a Device or MeshDevice. */
bool metal_failed_program(const struct metal_names *names, const void *program, const void *device);
