/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds a keeper or starts one. The daemon binds the socket and connects to it before the keeper
 * runs: messages wait in the socket, so nobody has to wait for a process to start, and what a
 * daemon sent before it was killed still arrives.
 */

struct child;
struct loop;

/* A connection to the keeper at @path. -ECONNREFUSED or -ENOENT if there is none; -EPERM if it is a stranger's. */
int keeper_start_connect(const char *path, int *ret_fd);

/*
 * Starts a keeper at @path in place of whatever socket is there: a dead one's, or a stuck one's, which
 * ends when it sees that. @child is the process that starts it and ends at once. 0 or a negative errno.
 */
int keeper_start_new(const char *path, const char *program, struct loop *loop, struct child *child,
		     int *ret_fd);
