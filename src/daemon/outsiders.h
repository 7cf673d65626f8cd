/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who holds memory without a book that the daemon has: clients of the kernel module's plain ioctls, and
 * owners of kernel books that it may not read. The module tells their totals, and every view of the daemon
 * has them too.
 */

struct registry;
struct roster;
struct snapshot;

/* Adds those who are not in @roster. From any thread. 0 or -ENOMEM. */
int outsiders_collect(const struct registry *registry, const struct roster *roster,
		      struct snapshot *snapshot);
