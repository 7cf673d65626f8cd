/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who owns a book? The header names a process; it is trusted only if the kernel agrees. The owner
 * is the process with that start time and that innermost pid, if it can have created the file: its
 * real or saved user created it, or root did (which keeps books for others, and creates one before
 * a process drops its privileges). A descriptor alone proves nothing: children inherit it, others
 * receive it.
 */

#include <stdint.h>

struct book_header;
struct proc;
struct proc_facts;

enum owner_verdict {
	OWNER_NO = 0, /* another process */
	OWNER_YES = 1,
	OWNER_FORGED = 2, /* that process, but it cannot have created the book */
};

/*
 * @header: as the reader has it. @uid: who created the book's file, its st_uid. @proc: to look for
 * what the library did not tell; NULL = not to.
 */
enum owner_verdict owner_judge(const struct proc *proc, const struct book_header *header,
			       uint32_t uid, const struct proc_facts *facts);
