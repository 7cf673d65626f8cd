/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kernel says about processes. The identity of a process always comes from here, never
 * from what the process wrote. Files are read below one folder, /proc or TTMEM_PROC_ROOT (for
 * tests).
 */

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/process-id.h"

struct time_offsets;

struct proc {
	int root;     /* fd of the folder */
	bool is_real; /* it is /proc: pids are processes of this machine */
};

struct proc_facts {
	struct process_id id;
	uint32_t ns_pid;        /* in the innermost pid namespace */
	uint32_t parent;        /* its pid; 0 = outside of our namespace, or none */
	uint64_t pid_namespace; /* inode, 0 = not visible */
	uint32_t real_uid;
	uint32_t saved_uid;
	char state;    /* 'R', 'S', 'Z', ... */
	char comm[64]; /* any bytes */
};

#define PROC_CONTAINER_SIZE 72 /* 64 hexadecimal digits, or a short name */

int proc_open(struct proc *proc);
void proc_close(struct proc *proc);

/* Lists a folder below the root, "." for the root itself. NULL with errno set. */
DIR *proc_list(const struct proc *proc, const char *path);

/* The next entry that is a pid; 0 at the end. */
uint32_t proc_next(DIR *listing);

/* -ENOENT or -ESRCH if there is no such process. */
int proc_read(const struct proc *proc, uint32_t pid, struct proc_facts *ret_facts);

/* Only the start time: cheaper. 0 if there is no such process. */
uint64_t proc_start_ticks(const struct proc *proc, uint32_t pid);

/* Whether all threads have exited, though the process may not have been reaped yet. */
bool proc_is_over(const struct proc *proc, const struct proc_facts *facts);

/*
 * Whether the process that started then has ended, for certain: where /proc cannot be read for another reason, such as
 * too many open files, it has not.
 */
bool proc_has_ended(const struct proc *proc, struct process_id id);

/* Whether its pid is still its own; it may have ended, if nothing has waited for it. */
static inline bool proc_is_there(const struct proc *proc, struct process_id id)
{
	return proc_start_ticks(proc, id.pid) == id.start_ticks;
}

/* A pidfd of that process; -ESRCH if the pid is another's by now, or another negative errno. */
int proc_pid_fd(const struct proc *proc, struct process_id id);

/*
 * The process of a pidfd. As long as this says the same, its pid is not another's. -ESRCH if nothing of it
 * is left; -EXDEV if it is outside of our pid namespace; -EBADF if @pid_fd is no pidfd; another negative
 * errno if that cannot be read.
 */
int proc_of_pid_fd(int pid_fd, uint32_t *ret_pid);

#define PROC_FILES_MAX 256u

struct proc_file {
	dev_t device;
	ino_t inode;
	uint32_t owner; /* whose share pays for the search; see maps-budget.h */
};

/* Searches the mappings of a process for several files in one reading. */
struct proc_mappings {
	const struct proc_file *files;
	size_t count;     /* at most PROC_FILES_MAX */
	size_t bytes_max; /* of the list of mappings; anybody can make it long */
	size_t bytes;     /* read, on return */
	bool mapped[PROC_FILES_MAX];
};

/* 0 with the results in @search, -EFBIG if the list is too long, another errno if not visible. */
int proc_find_mapped(const struct proc *proc, uint32_t pid, struct proc_mappings *search);

/*
 * Whether a file is mapped: 1 or 0; -EFBIG if the list has more than @bytes_max, or another negative
 * errno if that is not visible. @ret_bytes: how much of the list was read; may be NULL.
 */
int proc_has_mapped(const struct proc *proc, uint32_t pid, const struct proc_file *file,
		    size_t bytes_max, size_t *ret_bytes);

/* Id of the container it runs in; empty if none. */
void proc_container(const struct proc *proc, uint32_t pid, char ret_id[PROC_CONTAINER_SIZE]);

/* Its memory cgroup, for memory_cgroup_limited(); the caller frees it. NULL: it is not known. */
char *proc_memory_path(const struct proc *proc, uint32_t pid, bool *ret_is_v1);

/* Converts a start time to CLOCK_REALTIME, given the current clocks. */
uint64_t proc_start_ns(uint64_t start_ticks, uint64_t boottime_now, uint64_t realtime_now);

/* The same with the clocks as they are. */
uint64_t proc_started_ns(uint64_t start_ticks);

/* What our own time namespace adds to clocks and to start times in /proc. */
const struct time_offsets *proc_time_offsets(void);

/* The same of another process; false if that is not known. */
bool proc_offsets_of(const struct proc *proc, uint32_t pid, struct time_offsets *ret_offsets);

/* CLOCK_MONOTONIC of the initial time namespace. */
uint64_t proc_monotonic_ns(void);

/* Name of a user, or the number if there is none. */
void proc_user_name(uint32_t uid, char *ret_name, size_t size);

/* The parsers, for tests. Return 0 or -EBADMSG. */
int proc_parse_stat(const char *text, struct proc_facts *ret_facts);
int proc_parse_status(const char *text, struct proc_facts *ret_facts);
void proc_parse_cgroup(const char *text, char ret_id[PROC_CONTAINER_SIZE]);
