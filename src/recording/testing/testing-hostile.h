/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Hostile recordings for fuzzers: patches to the chunks of a small good one, whose hashes are made right
 * again, so that the code behind them is tried, too.
 *
 * A patch: chunk (1 byte), 0 = its entry, 1 = its contents, else it is cut there (1), offset (2),
 * length (1), bytes. The first byte of the input is how the file ends: 0 = whole; up to 127, so many
 * bytes are missing; else so many 128ths of it.
 */

#include <stddef.h>
#include <stdint.h>

struct testing_chunks;

/* A file in memory with @good and the patches in @data. */
int testing_hostile_new(const struct testing_chunks *good, const uint8_t *data, size_t size);
