/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a process has ended. */

#include <stdbool.h>

struct snapshot;
struct store_ending;
struct tracked;

/* As from waitpid(), NULL = not known. */
const int *recorder_exit_status(const struct tracked *tracked);
void recorder_exit_set(struct store_ending *ending, const int *status);

/* @closed: the library said goodbye. */
struct store_ending recorder_exit_ending(const struct tracked *tracked,
					 const struct snapshot *snapshot, bool closed);

/* By a signal that is not how programs are ended in order. */
bool recorder_exit_was_killed(const struct tracked *tracked);
