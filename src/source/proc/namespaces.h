/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In which user and pid namespace a process is, as a text that can be compared, kept and stored:
 *
 *	""		in ours
 *	"?"		not known, or too deep to be written down
 *	USERS|PIDS	each: "" for ours; else BOOT/OUTERMOST/.../INNERMOST, the namespaces below
 *			ours; or BOOT^INODE for one that is not below ours
 *
 * A user namespace is named by its inode. The kernel reuses the inodes of namespaces that have
 * ended, and containers come and go, so a pid namespace has the start time of its first process
 * too: without that process there is no such namespace. BOOT tells one run of the machine from the
 * others.
 */

#include <stdbool.h>
#include <stdint.h>

#include "source/proc/proc.h"

#define NAMESPACES_SIZE 192
#define NAMESPACES_UNKNOWN "?"

struct namespaces {
	struct proc proc;   /* always the real /proc */
	uint64_t user, pid; /* inodes of ours */
	char boot[9];       /* the beginning of the boot id */
	bool has_overflow;  /* there are users who have no number in ours: */
	uint32_t overflow;  /* all of them look like this one */
};

int namespaces_init(struct namespaces *namespaces);
void namespaces_deinit(struct namespaces *namespaces);

/* Inode of our pid namespace; 0 = not known. */
uint64_t namespaces_our_pids(void);

/* Of a living process that we see. The caller makes sure that the pid was still the same later. */
void namespaces_read(const struct namespaces *namespaces, uint32_t pid,
		     char ret_text[NAMESPACES_SIZE]);

/*
 * Of a process that we may not see (Linux 6.11; "?" before). @ret_is_above: its pid namespace is
 * one above ours.
 */
void namespaces_read_pidfd(const struct namespaces *namespaces, int pid_fd,
			   char ret_text[NAMESPACES_SIZE], bool *ret_is_above);

/* Whether user @uid of ours is root in the user namespace of a process that we see. */
bool namespaces_is_root(const struct namespaces *namespaces, uint32_t pid, uint32_t uid);

/* What @text says of the user namespace: whether it is ours. And of the pid namespace. */
bool namespaces_has_our_users(const char *text);
bool namespaces_has_our_pids(const char *text);

/* Both known and equal. */
bool namespaces_is_same(const char *one, const char *other);

/* Both known, and the user and pid namespace of @inner are those of @outer or below them. */
bool namespaces_is_within(const char *outer, const char *inner);
