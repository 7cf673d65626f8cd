/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The full-screen view, from the first picture to the key that ends it. */

#include <stdbool.h>
#include <stdint.h>

#include "core/filter.h"
#include "tui/reader.h"

struct tui_options {
	uint32_t refresh_ms;
	struct filter filter; /* devices */
	bool all;             /* closed devices and ended processes too */
	bool ascii;           /* though the terminal could show more */
	bool colours;
	bool (*is_stopped)(void); /* somebody wants an end, by a signal */
};

/*
 * Runs until it is quit. @feeds: for totals and for details; they are taken in any case. 0, a
 * terminal_outcome, or a negative errno.
 */
int tui_run(const struct tui_options *options, const struct reader_feed feeds[2]);
