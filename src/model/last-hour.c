/* SPDX-License-Identifier: Apache-2.0 */

/* A ring of one entry a minute; entries older than an hour leave it. */

#include "model/last-hour.h"

#include "base/bits.h"
#include "base/clock.h"

#define LAST_HOUR_STEP_NS (60 * NS_PER_S)
#define LAST_HOUR_NS ((LAST_HOUR_ENTRIES - 1) * LAST_HOUR_STEP_NS)

static const struct last_hour_entry *last_hour_at(const struct last_hour *hour, uint32_t index)
{
	return &hour->entries[(hour->first + index) % LAST_HOUR_ENTRIES];
}

void last_hour_put(struct last_hour *hour, const struct last_hour_entry *now)
{
	if (hour->count > 0 &&
	    now->time_ns - last_hour_at(hour, hour->count - 1)->time_ns < LAST_HOUR_STEP_NS)
		return;
	/* A machine that was suspended has few entries within the hour. */
	while (hour->count > 0 && (hour->count == LAST_HOUR_ENTRIES ||
				   now->time_ns - last_hour_at(hour, 0)->time_ns > LAST_HOUR_NS)) {
		hour->first = (hour->first + 1) % LAST_HOUR_ENTRIES;
		hour->count--;
		hour->is_full = true;
	}
	hour->entries[(hour->first + hour->count++) % LAST_HOUR_ENTRIES] = *now;
}

/* A change beyond the type's range is as large as it can be. */
static int64_t last_hour_difference(uint64_t now, uint64_t then)
{
	if (now >= then)
		return (int64_t)bits_min(now - then, INT64_MAX);
	return -(int64_t)bits_min(then - now, INT64_MAX);
}

void last_hour_change(const struct last_hour *hour, const struct last_hour_entry *now,
		      struct last_hour_change *ret_change)
{
	const struct last_hour_entry *then = last_hour_at(hour, 0);

	*ret_change = (struct last_hour_change){.incidents = now->incidents};
	if (hour->count == 0)
		return;
	ret_change->over_ns = now->time_ns - then->time_ns;
	ret_change->bytes = last_hour_difference(now->bytes, then->bytes);
	/* Those that were counted before the first entry, such as leaks found at the start, are new. */
	if (hour->is_full)
		ret_change->incidents -= bits_min(then->incidents, now->incidents);
}
