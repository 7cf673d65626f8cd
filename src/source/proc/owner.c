/* SPDX-License-Identifier: Apache-2.0 */

/* Decides who owns a book. */

#include "source/proc/owner.h"

#include <stdbool.h>

#include "base/bits.h"
#include "base/process/time-offsets.h"
#include "book/format/layout.h"
#include "source/proc/proc.h"

static bool owner_is_near(uint64_t a, uint64_t b, uint64_t slack)
{
	return (a > b ? a - b : b - a) <= slack;
}

static bool owner_started_then(const struct proc *proc, const struct book_header *header,
			       const struct proc_facts *facts)
{
	uint64_t slack = time_offsets_slack(proc_time_offsets()->boottime_ns);
	struct time_offsets offsets;

	if (owner_is_near(header->start_ticks, facts->id.start_ticks,
			  bits_max(slack, time_offsets_slack(header->boottime_offset))))
		return true;
	/* Early libraries do not tell what their time namespace adds. */
	return !header->boottime_offset && proc && proc_offsets_of(proc, facts->id.pid, &offsets) &&
	       offsets.boottime_ns &&
	       owner_is_near(time_offsets_ticks(header->start_ticks, offsets.boottime_ns),
			     facts->id.start_ticks,
			     bits_max(slack, time_offsets_slack(offsets.boottime_ns)));
}

enum owner_verdict owner_judge(const struct proc *proc, const struct book_header *header,
			       uint32_t uid, const struct proc_facts *facts)
{
	if (header->pid != facts->ns_pid || !owner_started_then(proc, header, facts))
		return OWNER_NO;
	/*
	 * The same pid in two containers that were started in one tick; the namespace is not always
	 * visible.
	 */
	if (header->pid_namespace && facts->pid_namespace &&
	    header->pid_namespace != facts->pid_namespace)
		return OWNER_NO;
	if (uid == 0 || uid == facts->real_uid || uid == facts->saved_uid)
		return OWNER_YES;
	return OWNER_FORGED;
}
