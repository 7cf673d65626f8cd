/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes of a recording that had ended by a moment, for documents about them. */

#include <stdbool.h>

#include "base/ending.h"

struct recording;
struct scan;
struct snapshot_process;

/* How a process of a snapshot has ended; @scan: the books of that moment. False: it still lived. */
bool recorded_process_end(const struct recording *recording, const struct scan *scan,
			  const struct snapshot_process *process, struct ending *ret_ending);
