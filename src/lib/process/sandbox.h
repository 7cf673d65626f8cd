/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether the program has put itself into a seccomp sandbox before its first event. Then any system call
 * may kill it, and nothing but /proc tells: which needs system calls. So while the program starts, before
 * anything else can have happened, the file that tells is opened. Reading from a descriptor is the one
 * useful call that even strict mode allows; at the first event it shows what has changed since. Nothing
 * that would tell which file a descriptor is, is allowed: sandbox.c says how it is known without.
 *
 * A filter that was there from the start (a container's, a service's) is no reason to stop: nobody can know
 * what it kills, and most only refuse. Not seen: the sandbox of another thread than the one that started
 * the program, strict mode in a forked child, and what is set up later. ttmem_freeze() is for those.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * When the program starts. Return: 1 + the descriptor to keep, with the one before it; 0 = none. They belong
 * to this process: kept in memory that a forked child does not inherit.
 */
uint32_t sandbox_open(void);

/*
 * At the first event. @kept: what sandbox_open() returned, 0 = none; used up. False: the program has
 * sandboxed itself, so no system call may be made. Preserves errno.
 */
bool sandbox_allows(uint32_t kept);

/* Whether reading the time stamp counter raises a signal in this thread. A system call. */
bool sandbox_forbids_clock(void);
