/* SPDX-License-Identifier: Apache-2.0 */

/* The row of a buffer: when it also has the phase of its process. */

#include "answers/buffers.h"

#include <string.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"

static const char *process_phase(const char *process, const char *buffer)
{
	struct snapshot_process processes[] = {{.phase = process, .alive = true}};
	const struct snapshot snapshot = {.processes = processes, .process_count = 1};
	const struct snapshot_buffer one = {.phase = buffer};

	return buffers_row_of(&snapshot, &one).process_phase;
}

UNIT(a_process_has_a_phase_of_its_own_unless_the_buffers_phase_shows_it)
{
	assert(!process_phase(NULL, NULL) && !process_phase(NULL, "load"));
	assert(!process_phase("", "load"));
	assert(!process_phase("load", "load") && !process_phase("load", "load/weights"));
	assert(strcmp(process_phase("load", NULL), "load") == 0);
	assert(strcmp(process_phase("load", "decode"), "load") == 0);
	assert(strcmp(process_phase("load", "loader"), "load") == 0);
	assert(strcmp(process_phase("load/weights", "load"), "load/weights") == 0);
}
