/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How owners of books ended, on kernels that forget it once the parent has waited: the process connector
 * (source/proc/exit-events.h) tells of every exit, and what is about an owner is kept with its entry. An
 * event has only a pid. It belongs to the owner because all events before the entry was made have been read
 * by then, and the owner, who lived then, has to exit before another process can get its pid. After a loss
 * that is not certain any more, so the ends of all owners of that time stay unknown.
 */

#include <stdbool.h>

#include "base/ending.h"

struct registry;
struct registry_entry;

/* Listens, if this kernel needs it and allows it; otherwise nothing is ever told. */
void registry_exits_open(struct registry *registry);
void registry_exits_close(struct registry *registry);

/*
 * Before an entry is put into the list: events from now on are about its owner, if that lives. @pid_fd: of
 * the owner, -1 = none.
 */
void registry_exits_begin(struct registry *registry, struct registry_entry *entry, int pid_fd);

/* The status of an owner that has ended, if it was told. */
void registry_exits_find(struct registry *registry, const struct registry_entry *entry,
			 struct ending *ending);
