/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The paragraph about a failed allocation, for people: what was requested and by which line, what was free,
 * the largest free block, who held the rest, and what would have to be freed so that it fits. What is not
 * known is called so.
 */

#include <stdint.h>

struct snapshot;
struct snapshot_incident;

/*
 * @then: its process when it failed, the first of the snapshot, with its devices and the buffers of the one
 * that it failed on; is sorted by place. NULL: not known any more. The caller frees the text. NULL: no memory.
 */
char *failed_text(const struct snapshot_incident *failed, uint32_t pid, struct snapshot *then);
