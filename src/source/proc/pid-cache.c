/* SPDX-License-Identifier: Apache-2.0 */

/* The cache is a table with open addressing; the list of processes in containers is made when first needed. */

#include "source/proc/pid-cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "model/snapshot.h"

#define PEOPLE_PLACES (PEOPLE_MAX * 2)

struct people_entry {
	int result; /* of looking it up */
	struct proc_facts facts;
	struct snapshot_process process;
};

struct people {
	const struct proc *proc;
	struct snapshot *snapshot;
	uint32_t *places; /* 1 + index into entries, 0 = empty */
	struct people_entry *entries;
	size_t count, capacity;
	bool has_inside;
	uint32_t *inside; /* pids of processes in namespaces below ours */
	size_t inside_count, inside_capacity;
};

int people_new(struct people **ret_people, const struct proc *proc, struct snapshot *snapshot)
{
	CLEANUP(people_cleanup) struct people *people = calloc(1, sizeof(*people));

	if (!people)
		return -ENOMEM;
	people->proc = proc;
	people->snapshot = snapshot;
	people->places = calloc(PEOPLE_PLACES, sizeof(*people->places));
	if (!people->places)
		return -ENOMEM;
	*ret_people = cleanup_steal(people);
	return 0;
}

struct people *people_free(struct people *people)
{
	if (!people)
		return NULL;
	free(people->places);
	free(people->entries);
	free(people->inside);
	free(people);
	return NULL;
}

void people_cleanup(struct people **people)
{
	people_free(*people);
}

const struct proc *people_proc(const struct people *people)
{
	return people->proc;
}

/* What people want to know of it. */
static int people_describe(struct people *people, const struct proc_facts *facts,
			   struct snapshot_process *ret_process)
{
	struct snapshot *snapshot = people->snapshot;
	char container[PROC_CONTAINER_SIZE], user[64];
	struct snapshot_process process = {
		.pid = facts->pid,
		.ns_pid = facts->ns_pid,
		.start_ticks = facts->start_ticks,
		.start_ns = proc_start_ns(facts->start_ticks, clock_ns(CLOCK_BOOTTIME),
					  clock_ns(CLOCK_REALTIME)),
		.comm = snapshot_text(snapshot, facts->comm,
				      strnlen(facts->comm, sizeof(facts->comm))),
		.user_id = facts->real_uid,
		.maker_id = facts->real_uid,
		.alive = true,
		.exact = true,
	};

	proc_user_name(facts->real_uid, user, sizeof(user));
	process.user = snapshot_text(snapshot, user, strlen(user));
	proc_container(people->proc, facts->pid, container);
	if (*container)
		process.container = snapshot_text(snapshot, container, strlen(container));
	if (!process.comm || !process.user)
		return -ENOMEM;
	process.last_ns = process.start_ns;
	*ret_process = process;
	return 0;
}

static int people_look(struct people *people, uint32_t pid, struct people_entry *entry)
{
	if (pid == (uint32_t)getpid() && people->proc->is_real)
		return -ESRCH; /* nobody wants to see the tool itself */
	if (proc_read(people->proc, pid, &entry->facts) < 0 ||
	    proc_is_over(people->proc, &entry->facts))
		return -ESRCH;
	return people_describe(people, &entry->facts, &entry->process);
}

static int people_entry(struct people *people, uint32_t pid, struct people_entry **ret_entry)
{
	uint64_t place = hash_u64(pid) % PEOPLE_PLACES;
	struct people_entry *entries;

	while (people->places[place]) {
		struct people_entry *entry = &people->entries[people->places[place] - 1];

		if (entry->facts.pid == pid) {
			*ret_entry = entry;
			return 0;
		}
		place = (place + 1) % PEOPLE_PLACES;
	}
	if (people->count >= PEOPLE_MAX)
		return -ESRCH;
	entries =
		array_grow(people->entries, &people->capacity, people->count + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	people->entries = entries;
	entries += people->count;
	*entries = (struct people_entry){0};
	entries->result = people_look(people, pid, entries);
	entries->facts.pid = pid;
	people->places[place] = (uint32_t)++people->count;
	*ret_entry = entries;
	return 0;
}

int people_find(struct people *people, uint32_t pid, struct proc_facts *ret_facts,
		struct snapshot_process *ret_process)
{
	struct people_entry *entry = NULL;
	int r = people_entry(people, pid, &entry);

	if (r == 0)
		r = entry->result;
	if (r < 0)
		return r;
	*ret_facts = entry->facts;
	*ret_process = entry->process;
	return 0;
}

/* Everybody who is called otherwise inside. */
static int people_list_inside(struct people *people)
{
	CLEANUP_CLOSEDIR DIR *listing = proc_list(people->proc, ".");
	uint32_t pid;

	people->has_inside = true;
	while (listing && (pid = proc_next(listing))) {
		struct proc_facts facts;
		uint32_t *grown;

		if (proc_read(people->proc, pid, &facts) < 0 || facts.ns_pid == pid)
			continue;
		grown = array_grow(people->inside, &people->inside_capacity,
				   people->inside_count + 1, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		people->inside = grown;
		grown[people->inside_count++] = pid;
	}
	return 0;
}

int people_find_inside(struct people *people, uint32_t ns_pid, dev_t device, ino_t inode,
		       struct proc_facts *ret_facts, struct snapshot_process *ret_process)
{
	int r = people->has_inside ? 0 : people_list_inside(people);

	for (size_t i = 0; r == 0 && i < people->inside_count; i++) {
		struct snapshot_process process;
		struct proc_facts facts;

		r = people_find(people, people->inside[i], &facts, &process);
		if (r == 0 && facts.ns_pid == ns_pid &&
		    proc_has_mapped(people->proc, facts.pid, device, inode) == 1) {
			*ret_facts = facts;
			*ret_process = process;
			return 0;
		}
		if (r == -ESRCH)
			r = 0;
	}
	return r < 0 ? r : -ESRCH;
}
