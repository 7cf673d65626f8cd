/* SPDX-License-Identifier: Apache-2.0 */

/* Converting time stamps to the time of day. */

#include "model/timebase.h"

#include "book/format/layout.h"

void timebase_init(struct timebase *timebase, const struct book_header *header,
		   const struct timebase_now *now)
{
	/*
	 * The start is counted back from now, not taken from the header's realtime: the system
	 * clock may have been set since, and users compare with the clock they see.
	 */
	uint64_t ago = header->monotonic_start < now->monotonic
			       ? now->monotonic - header->monotonic_start
			       : 0;

	*timebase = (struct timebase){
		.stamp_start = header->clock_start,
		.stamp_now = now->stamp,
		.start = ago < now->realtime ? now->realtime - ago : 0,
		.now = now->realtime,
	};
}

uint64_t timebase_ns(const struct timebase *timebase, uint64_t stamp)
{
	uint64_t length = timebase->now - timebase->start;
	uint64_t range;

	if (stamp == 0)
		return 0;
	if (stamp <= timebase->stamp_start)
		return timebase->start;
	if (stamp >= timebase->stamp_now || timebase->stamp_now <= timebase->stamp_start)
		return timebase->now;
	range = timebase->stamp_now - timebase->stamp_start;
	return timebase->start +
	       (uint64_t)((unsigned __int128)(stamp - timebase->stamp_start) * length / range);
}
