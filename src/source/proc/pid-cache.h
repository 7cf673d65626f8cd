/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who processes are, for sources that know them by pid: what the kernel says of each, asked once however
 * often a pid is named. Lives as long as one snapshot is being made.
 */

#include <stdbool.h>
#include <stdint.h>

#include "source/proc/proc.h"

#define PEOPLE_MAX 65536u

struct people;
struct snapshot;
struct snapshot_process;

/* 0 or a negative errno. @proc is only lent. */
int people_new(struct people **ret_people, const struct proc *proc, struct snapshot *snapshot);
struct people *people_free(struct people *people);
void people_cleanup(struct people **people);

const struct proc *people_proc(const struct people *people);

/*
 * A living process; @ret_process is ready for snapshot_add_process() but for its source. 0, -ESRCH if there is
 * none, it has ended, or is ourselves; -ENOMEM.
 */
int people_find(struct people *people, uint32_t pid, struct proc_facts *ret_facts,
		struct snapshot_process *ret_process);

/* The process that has @ns_pid in a namespace below ours and has the file mapped. As people_find(). */
int people_find_inside(struct people *people, uint32_t ns_pid, dev_t device, ino_t inode,
		       struct proc_facts *ret_facts, struct snapshot_process *ret_process);
