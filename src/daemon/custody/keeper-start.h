/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds a keeper or starts one. The daemon binds the socket and connects to it before the keeper
 * runs: messages wait in the socket, so nobody has to wait for a process to start, and what a
 * daemon sent before it was killed still arrives.
 */

struct child;
struct loop;

/*
 * Connects to the keeper at @path. -ECONNREFUSED or -ENOENT if there is none; -EPERM if it belongs
 * to another user.
 */
int keeper_start_connect(const char *path, int *ret_fd);

/*
 * Starts a keeper at @path, replacing the socket of a dead keeper or of a stuck one, which exits
 * when it notices. @child starts the keeper and exits at once. 0 or a negative errno.
 */
int keeper_start_new(const char *path, const char *program, struct loop *loop, struct child *child,
		     int *ret_fd);
