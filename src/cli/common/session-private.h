/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by session.c and session-recording.c; private to them. */

#include <stdbool.h>

#include "recording/read/recording.h"

struct card_watch;
struct frame_names;

struct session {
	struct source *books;
	struct recording *recording; /* NULL = of now */
	struct recording_moment moment;
	bool is_peak; /* instead of the end, at which nothing was live */

	/* Of now only. */
	struct card_watch *cards;  /* what the daemon remembers, and for commands that look again */
	bool has_asked;            /* the daemon about cards */
	struct frame_names *names; /* NULL until names are needed */
};
