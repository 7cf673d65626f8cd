/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Describes processes for sources that know them by pid: what the kernel says about each, read once
 * however often a pid is named. Lives only while one snapshot is made.
 */

#include <stdbool.h>
#include <stdint.h>

#include "source/proc/proc.h"

#define PID_CACHE_MAX 65536u

struct pid_cache;
struct snapshot;
struct snapshot_process;

/* Returns 0 or a negative errno. @proc is only borrowed. */
int pid_cache_new(struct pid_cache **ret_cache, const struct proc *proc, struct snapshot *snapshot);
struct pid_cache *pid_cache_free(struct pid_cache *pid_cache);
void pid_cache_cleanup(struct pid_cache **pid_cache);

const struct proc *pid_cache_proc(const struct pid_cache *pid_cache);

/*
 * Finds a live process; @ret_process is ready for snapshot_add_process() except for its source.
 * Returns 0; -ESRCH if there is none, it has exited, or it is ourselves; or -ENOMEM.
 */
int pid_cache_find(struct pid_cache *pid_cache, uint32_t pid, struct proc_facts *ret_facts,
		   struct snapshot_process *ret_process);

/*
 * The files that pid_cache_has_mapped() is asked about; at most PROC_FILES_MAX, borrowed. All are
 * searched for when the mappings of a process are read, which is done once unless there are too many.
 */
void pid_cache_set_files(struct pid_cache *pid_cache, const struct proc_file *files, size_t count);

/*
 * Whether a live process has the file with that index mapped: 1 or 0, -EFBIG if it has too many
 * mappings, another negative errno if they are not visible.
 */
int pid_cache_has_mapped(struct pid_cache *pid_cache, uint32_t pid, size_t file);

/* Processes with too many mappings. */
size_t pid_cache_unread(const struct pid_cache *pid_cache);

/*
 * Finds the process that has @ns_pid in a namespace below ours and has the file with that index
 * mapped. Returns as pid_cache_find(); -EACCES: none is known to have it, but not all mappings are
 * visible.
 */
int pid_cache_find_inside(struct pid_cache *pid_cache, uint32_t ns_pid, size_t file,
			  struct proc_facts *ret_facts, struct snapshot_process *ret_process);
