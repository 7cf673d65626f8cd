/* SPDX-License-Identifier: Apache-2.0 */

/* Reads the connector in the loop, and to its end where the order matters. */

#include "daemon/registry/registry-exits.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/threads/loop.h"
#include "daemon/registry/registry-private.h"
#include "daemon/registry/tracked.h"
#include "source/proc/exit-events.h"
#include "source/proc/exit-status.h"

#define REGISTRY_EXITS_TURN 256u   /* messages in a turn of the loop */
#define REGISTRY_EXITS_DRAIN 8192u /* more than can wait, unless they come faster than we read */

/* The first entry that is not of a lower pid. */
static size_t registry_exits_first(const struct registry *registry, uint32_t pid)
{
	size_t from = 0, to = registry->count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (registry->entries[middle]->tracked->process.pid < pid)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/*
 * The status of a process is that of its first thread, unless threads that exit later end the whole
 * process with another one.
 */
static void registry_exits_tell(struct registry_entry *entry, const struct exit_event *event)
{
	if (!entry->told.has_status && event->is_leader)
		ending_set(&entry->told, event->status);
	else if (entry->told.has_status && event->status != entry->told.status)
		entry->exit_is_unclear = true;
}

static void registry_exits_take(struct registry *registry, const struct exit_event *event)
{
	for (size_t i = registry_exits_first(registry, event->pid); i < registry->count; i++) {
		struct registry_entry *entry = registry->entries[i];

		if (entry->tracked->process.pid != event->pid)
			return;
		registry_exits_tell(entry, event);
	}
}

/* Reads at most @most messages. True: there is none left. */
static bool registry_exits_read(struct registry *registry, unsigned int most)
{
	struct exit_event event;

	if (registry->exits.fd < 0)
		return true;
	for (unsigned int i = 0; i < most; i++) {
		int r = exit_events_next(registry->exits.fd, &event);

		if (r == -EAGAIN)
			return true;
		if (r == 0)
			registry_exits_take(registry, &event);
		else if (r == -ENOBUFS)
			registry->exits_lost++;
		else if (r < 0 && r != -EINTR) {
			registry_exits_close(registry);
			return false;
		}
	}
	return false;
}

static void registry_exits_ready(struct loop_source *source, uint32_t events)
{
	(void)registry_exits_read(container_of(source, struct registry, exits),
				  REGISTRY_EXITS_TURN); /* the rest in the next turn */
}

void registry_exits_open(struct registry *registry)
{
	struct loop_source *exits = &registry->exits;

	*exits = (struct loop_source){.fd = -1, .ready = registry_exits_ready};
	if (!registry->proc.is_real || exit_status_is_kept())
		return;
	exits->fd = exit_events_open();
	if (exits->fd >= 0 && loop_add(registry->config.loop, exits, EPOLLIN) < 0)
		(void)close(cleanup_steal_fd(&exits->fd)); /* nothing is lost but what it tells */
}

void registry_exits_close(struct registry *registry)
{
	if (registry->exits.fd < 0)
		return;
	loop_remove(registry->config.loop, &registry->exits);
	(void)close(cleanup_steal_fd(&registry->exits.fd)); /* likewise */
	registry->exits_lost++;
}

void registry_exits_begin(struct registry *registry, struct registry_entry *entry, int pid_fd)
{
	struct pollfd end = {.fd = pid_fd, .events = POLLIN};
	bool is_drained = registry_exits_read(registry, REGISTRY_EXITS_DRAIN);

	/* If it has ended, its pid may be another's already. */
	entry->exit_is_unclear = !is_drained || pid_fd < 0 || poll(&end, 1, 0) != 0;
	entry->exits_lost = registry->exits_lost;
}

void registry_exits_find(struct registry *registry, const struct registry_entry *entry,
			 struct ending *ending)
{
	/* The kernel sends the event before it shows anybody that the process has ended. */
	if (registry_exits_read(registry, REGISTRY_EXITS_DRAIN) && entry->told.has_status &&
	    !entry->exit_is_unclear && entry->exits_lost == registry->exits_lost)
		ending_set(ending, entry->told.status);
}
