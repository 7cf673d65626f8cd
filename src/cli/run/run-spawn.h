/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Starting a command with tracking on, its books offered to a socket of ours. */

#include <signal.h>
#include <sys/types.h>

struct rlimit;

/*
 * @offer: path of the socket, put in front of what TTMEM_OFFER has already. @shim: a library, put in front
 * of what LD_PRELOAD has, or NULL. @mask: the signals that the command shall have blocked, @files: its limit
 * of descriptors. The pid, or a negative errno: of fork(), or why the command cannot be run.
 */
pid_t spawn_tracked(const char *const *argv, const char *offer, const char *shim,
		    const sigset_t *mask, const struct rlimit *files);
