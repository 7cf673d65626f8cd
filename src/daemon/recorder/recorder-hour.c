/* SPDX-License-Identifier: Apache-2.0 */

/* What has changed within the last hour, from the totals that are sampled every second anyway. */

#include <time.h>

#include "base/clock.h"
#include "daemon/recorder/recorder-private.h"
#include "model/amount.h"
#include "model/merge.h"

/* With the lock held. */
static struct last_hour_entry hour_now(const struct recorder *recorder)
{
	struct last_hour_entry now = {
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.bytes = recorder->hour_bytes,
	};

	for (uint32_t kind = 0; kind < TYPES_INCIDENTS; kind++)
		now.incidents = merge_add(now.incidents, recorder->incidents[kind]);
	return now;
}

void recorder_hour_put(struct recorder *recorder, const struct snapshot *snapshot)
{
	struct last_hour_entry now;
	uint64_t bytes = 0;

	for (size_t i = 0; i < snapshot->device_count; i++)
		bytes = merge_add(bytes, amount_of_device(&snapshot->devices[i], AMOUNT_ALL).used);
	pthread_mutex_lock(&recorder->lock);
	recorder->hour_bytes = bytes;
	now = hour_now(recorder);
	last_hour_put(&recorder->hour, &now);
	pthread_mutex_unlock(&recorder->lock);
}

void recorder_last_hour(struct recorder *recorder, struct last_hour_change *ret_change)
{
	struct last_hour_entry now;

	pthread_mutex_lock(&recorder->lock);
	now = hour_now(recorder);
	last_hour_change(&recorder->hour, &now, ret_change);
	pthread_mutex_unlock(&recorder->lock);
}
