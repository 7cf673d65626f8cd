/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose book is it? The header names a process; it is believed only if the kernel agrees. The owner is
 * the process with that start time and that innermost pid, if it may have made the file: its real or
 * saved user made it, or root did (who keeps books for others, and made it before a process dropped its
 * rights). A descriptor alone proves nothing: children inherit it, others are handed it.
 */

#include <stdint.h>

struct book_header;
struct proc_facts;

enum owner_verdict {
	OWNER_NO = 0, /* another process */
	OWNER_YES = 1,
	OWNER_FORGED = 2, /* that process, but it cannot have made the book */
};

/* @uid: who made the book's file, its st_uid. */
enum owner_verdict owner_judge(const struct book_header *header, uint32_t uid,
			       const struct proc_facts *facts);
