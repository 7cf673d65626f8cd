/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.health/1: whether the daemon can do all it should. Over TCP everybody reads it. */

#include <stdbool.h>
#include <stdint.h>

struct document;
struct health;
struct session_row;
struct snapshot_recording;

struct healthz_row {
	const char *status, *details;
	const struct session_row *session; /* NULL = the browser is not signed in */
	bool has_fleet;
	const struct snapshot_recording *recording; /* NULL = none, or not for who asks */
	const struct health *health;
};

/* "open", "token", "none"; NULL = none of these */
const char *healthz_details(uint32_t who);

extern const struct document healthz_document;
