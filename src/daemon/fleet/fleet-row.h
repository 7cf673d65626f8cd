/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One machine of the fleet, as it describes itself in ttmem.host/1. Other machines may send
 * anything: only numbers are taken, and texts that are ours.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/host.h"

struct fleet_row {
	const char *host;  /* borrowed */
	char problem[160]; /* why nothing is known of it; "" = it has answered */
	bool has_facts;    /* else there is a problem */
	bool is_degraded;  /* by its own word */
	struct host_row facts;
};

/* What should be looked at, worst first; a row may have several. */
enum fleet_trouble {
	FLEET_SILENT,    /* it does not answer, or not as it should */
	FLEET_FULL,      /* memory of a device is more than 90 % full */
	FLEET_INCIDENTS, /* within the last hour */
	FLEET_GROWS,     /* by more than FLEET_GROWTH_MIN within the last hour */
	FLEET_DEGRADED,  /* something does not work there */
	FLEET_TROUBLES,
};

#define FLEET_GROWTH_MIN ((int64_t)256 << 20)

bool fleet_row_has(const struct fleet_row *row, enum fleet_trouble trouble);

/* Fills the row from an answer; if that is no ttmem.host/1, sets the problem. */
void fleet_row_parse(struct fleet_row *row, const char *text, size_t length);

/* For qsort(): the most trouble first, then by name. */
int fleet_row_compare(const void *left, const void *right);

extern const struct field fleet_row_fields[]; /* of an element of "hosts" in ttmem.fleet/1 */
