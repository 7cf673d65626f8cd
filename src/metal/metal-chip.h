/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What UMD, the driver library below tt-metal, says about chips when tt-metal asks it: their unique ids, as
 * in the names of tt-metal's regions, and the ids of their boards. Nothing is asked for: that could throw.
 * A chip of which different things were said is not known.
 */

#include <stdint.h>

/* @map: std::unordered_map<int, uint64_t>, of unique ids by chip. */
void metal_chip_told_ids(const void *map);

/* The board that a chip is on. */
void metal_chip_told_board(int32_t chip, uint64_t board);

/* 0 = not known. */
uint64_t metal_chip_unique_id(uint32_t chip);

/* The kind of card, if it has chips of @arch; NULL = not known. */
const char *metal_chip_card(uint32_t chip, const char *arch);
