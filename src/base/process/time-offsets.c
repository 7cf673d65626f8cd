/* SPDX-License-Identifier: Apache-2.0 */

/* Offsets are relative to the initial namespace, however deep a namespace is. */

#include "base/process/time-offsets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/small-file.h"

/* "boottime       100000         0": seconds, which may be negative, and ns. */
static int time_offsets_parse(const char *text, const char *clock, int64_t *ret_ns)
{
	const char *line = strstr(text, clock);
	char *end = NULL;
	int64_t s, ns;

	if (!line)
		return -EBADMSG;
	line += strlen(clock);
	s = strtoll(line, &end, 10);
	if (end == line)
		return -EBADMSG;
	line = end;
	ns = strtoll(line, &end, 10);
	if (end == line || __builtin_mul_overflow(s, (int64_t)NS_PER_S, &s) ||
	    __builtin_add_overflow(s, ns, ret_ns))
		return -EBADMSG;
	return 0;
}

int time_offsets_read(int folder, const char *path, struct time_offsets *ret_offsets)
{
	struct time_offsets offsets = {0};
	char text[256];
	ssize_t n = small_file_read(folder, path, text, sizeof(text));
	int r = n < 0 ? (int)n : 0;

	if (r == 0)
		r = time_offsets_parse(text, "monotonic", &offsets.monotonic_ns);
	if (r == 0)
		r = time_offsets_parse(text, "boottime", &offsets.boottime_ns);
	*ret_offsets = r == 0 ? offsets : (struct time_offsets){0};
	return r;
}

/* Whether the caller has asked for a namespace that only its children will be in. */
static bool time_offsets_are_childrens(void)
{
	struct stat own, children;

	return stat("/proc/self/ns/time", &own) == 0 &&
	       stat("/proc/self/ns/time_for_children", &children) == 0 &&
	       own.st_ino != children.st_ino;
}

void time_offsets_own(struct time_offsets *ret_offsets)
{
	(void)time_offsets_read(AT_FDCWD, "/proc/self/timens_offsets", ret_offsets); /* else 0 */
	/*
	 * The file has the offsets of the namespace for children. After unshare() that is not yet
	 * the caller's own, whose offsets are no longer shown anywhere: most likely there are none.
	 */
	if ((ret_offsets->monotonic_ns || ret_offsets->boottime_ns) && time_offsets_are_childrens())
		*ret_offsets = (struct time_offsets){0};
}

static int64_t time_offsets_tick(void)
{
	long hz = sysconf(_SC_CLK_TCK);

	return (int64_t)NS_PER_S / (hz > 0 ? hz : 100);
}

uint64_t time_offsets_ticks(uint64_t ticks, int64_t boottime_ns)
{
	int64_t tick = time_offsets_tick();
	int64_t shift = boottime_ns / tick + (boottime_ns % tick > 0);

	return ticks - (uint64_t)shift; /* wraps for nonsense, which then equals nothing */
}

uint64_t time_offsets_slack(int64_t boottime_ns)
{
	return boottime_ns % time_offsets_tick() != 0;
}
