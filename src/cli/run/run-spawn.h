/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Starts a command with tracking on, which offers its books to our socket. */

#include <signal.h>
#include <sys/types.h>

struct rlimit;

/*
 * @offer: path of the socket, put in front of the present TTMEM_OFFER. @shim: a library, put in
 * front of the present LD_PRELOAD, or NULL. @mask: the command's signal mask; @files: its
 * descriptor limit. The pid, or a negative errno: of fork(), or why the command cannot be run.
 */
pid_t spawn_tracked(const char *const *argv, const char *offer, const char *shim,
		    const sigset_t *mask, const struct rlimit *files);
