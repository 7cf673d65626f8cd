/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How far a long piece of work is: a bar on stderr, only if that is a terminal. */

#include <stdbool.h>
#include <stdint.h>

struct progress {
	uint64_t total; /* 0 = not known */
	uint64_t done;
	const char *unit; /* "row"; NULL = bytes */

	/* Private. */
	uint64_t drawn_ns;
};

/* After each change of @done: draws it, but not more often than people can see. */
void progress_draw(struct progress *progress);

/* Removes the bar, if there is one. */
void progress_end(struct progress *progress);
