/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory maps of the processes that the user may see, for "ttmem map" and "ttmem fit". */

#include "model/memory/memory-map.h"

struct session;
struct snapshot;

/*
 * As memory_map_find(); the caller owns the snapshot, which must outlive the maps. 0 or a negative
 * errno.
 */
int session_spaces_take(struct session *session, const struct filter *filter,
			struct snapshot **ret_snapshot, struct memory_map *ret_map);

/* The title of a map: "pid 42 (python3), device 1, DRAM". */
void session_spaces_print_title(const struct space *space);

/* Two lines: other processes that hold some of the same memory, and what is free beside all of them. */
void session_spaces_print_others(const struct space *space);

/* A line: what its blocks take in all banks together. Nothing where it is not known. */
void session_spaces_print_occupied(const struct space *space);
