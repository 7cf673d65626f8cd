/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ttmem-legacy: the allocation server that old clients know, as a program of its own. It keeps a book for each
 * of its clients and offers it to ttmemd like any process that keeps its own; ttmemd may be restarted
 * meanwhile. It answers from the books of all processes, which ttmemd tells it, and prints the old server's
 * lines.
 */

#include <stdbool.h>

struct config;

/*
 * Serves until it is asked to stop; reports errors on standard error. @is_started: by ttmemd, which logs what
 * cannot be served. @listening: a socket from it, which is taken; -1 = none. Return: the exit code.
 */
int legacy_program_run(const struct config *config, bool is_started, int listening);
