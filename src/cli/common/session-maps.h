/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memories of the processes that one may look at, for "ttmem map" and "ttmem fit". */

#include "model/memory-map.h"

struct session;
struct snapshot;

/* As memory_map_find(); the snapshot is the caller's and must outlive the spaces. 0 or a negative errno. */
int session_spaces_take(struct session *session, const struct filter *filter,
			struct snapshot **ret_snapshot, struct memory_map *ret_spaces);

/* "pid 42 (python3), device 1, DRAM", a line. */
void session_spaces_print_title(const struct space *space);
