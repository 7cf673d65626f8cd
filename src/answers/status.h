/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.status/1: the daemon that answers, and its state. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "model/health.h"

struct document;

struct status_door {
	const char *name, *where;
	const char *problem; /* NULL = none */
	bool is_open;
	uint32_t pid; /* of the process that has it; 0 = none, or not known */
	uint32_t user_id;
	bool has_user;
	uint64_t since_ns;
};

/* A limit that was reached: a counter of base/quota.def. */
struct status_limit {
	const char *metric, *help;
	uint64_t count;
};

struct status_row {
	bool is_running;
	uint32_t pid, user_id;
	bool you_see_all;
	bool has_flight;
	/* As far as the document has it, without its doors and limits. */
	struct health health;
	struct status_door doors[HEALTH_DOORS];
	size_t door_count;
	struct status_limit limits[QUOTA_IDS];
	size_t limit_count;
};

extern const struct field status_fields[];
extern const struct document status_document; /* its row: a status_row */

/* Fills doors and limits from those of the health. */
void status_set_lists(struct status_row *row);
