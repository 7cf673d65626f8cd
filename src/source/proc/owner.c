/* SPDX-License-Identifier: Apache-2.0 */

/* Decides who owns a book. */

#include "source/proc/owner.h"

#include "book/format/layout.h"
#include "source/proc/proc.h"

enum owner_verdict owner_judge(const struct book_header *header, uint32_t uid,
			       const struct proc_facts *facts)
{
	if (header->pid != facts->ns_pid || header->start_ticks != facts->start_ticks)
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
