/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a process that is not our child has ended. Only the kernel is asked, about the very process that a
 * pidfd or a start time identifies, so nobody can make another's process seem to have ended differently.
 * What the kernel does not tell is not known; it is never guessed.
 *
 * Until its parent has waited for it, the status is in /proc/PID/stat, for those who may trace the process;
 * others read a 0 there, which therefore counts only if we may. Afterwards the pidfd has it, from Linux 6.15
 * on; before that, the process connector (source/proc/exit-events.h) may have told it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/ending.h"
#include "base/process-id.h"

struct proc;

/* The status of process @id. @pid_fd: -1 = none. False: not known, or the process has not ended. */
bool exit_status_read(const struct proc *proc, struct process_id id, int pid_fd,
		      struct ending *ending);

/*
 * Whether this kernel can tell after the parent has waited. It is asked for its version: so an older
 * one can be played.
 */
bool exit_status_is_kept(void);

/* The status in the text of a stat file, for tests. 0 or -EBADMSG. */
int exit_status_parse(const char *text, int *ret_status);
