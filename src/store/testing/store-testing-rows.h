/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests: the results of a query, counted, and the last row of each kind with its texts. */

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct testing_world;

struct testing_told {
	size_t leaks, parts, buffers, incidents, holders;
	struct store_leak leak; /* the last of each */
	struct store_part part;
	struct snapshot_buffer buffer;
	uint64_t buffer_uid;
	struct store_incident incident;
	struct store_holder holder;
	char texts[64][256]; /* copies */
	size_t text_count;
};

extern const struct store_filter testing_everything;

struct testing_told testing_told_leaks(struct testing_world *world,
				       const struct store_filter *filter);
struct testing_told testing_told_incidents(struct testing_world *world,
					   const struct store_filter *filter);

/* Row functions for a struct testing_told. */
int testing_told_leak(void *context, const struct store_leak *leak);
int testing_told_incident(void *context, const struct store_incident *incident);
