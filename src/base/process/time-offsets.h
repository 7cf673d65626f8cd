/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clocks in time namespaces. A process in one sees CLOCK_MONOTONIC, CLOCK_BOOTTIME and the start
 * times of all processes in /proc shifted by the namespace's offsets. So values that two processes
 * compare are first converted to the machine's own view, that of the initial time namespace.
 */

#include <stdint.h>

struct time_offsets {
	int64_t monotonic_ns, boottime_ns; /* what a process sees, less the machine's own value */
};

/*
 * Reads a file timens_offsets of /proc. 0; or a negative errno, and both are 0: there are no time
 * namespaces here, or the text is not as expected.
 */
int time_offsets_read(int folder, const char *path, struct time_offsets *ret_offsets);

/* Of the calling process. */
void time_offsets_own(struct time_offsets *ret_offsets);

/* Start time of a process as in /proc/PID/stat, read where @boottime_ns applies, without it. */
uint64_t time_offsets_ticks(uint64_t ticks, int64_t boottime_ns);

/* By how many ticks that may be too small: start times are cut to ticks, offsets are not. */
uint64_t time_offsets_slack(int64_t boottime_ns);
