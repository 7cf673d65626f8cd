/* SPDX-License-Identifier: Apache-2.0 */

/* Process lists: books for the scan, and the totals of processes whose books we may not have. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/books/scan.h"
#include "source/daemon-client/daemon-client-private.h"
#include "source/daemon-client/daemon-client.h"

_Static_assert(NATIVE_TYPES == BOOK_TYPES, "types");

/*
 * Gives the book to the scan. Returns 0 if the scan has it now, and more than 0 if it cannot be read,
 * which its owner can bring about.
 */
static int daemon_client_hand_consume(struct scan *scan, const struct native_process *process,
				      int fd)
{
	struct scan_handed handed = {
		.owner = {.id = {process->pid, process->start_ticks},
			  .ns_pid = process->ns_pid,
			  .pid_namespace = process->pid_namespace,
			  .real_uid = process->user,
			  .saved_uid = process->user},
		.maker = process->maker,
		.container = process->container,
		.alive = process->flags & NATIVE_ALIVE,
	};
	int r;

	memcpy(handed.owner.comm, process->comm, sizeof(handed.owner.comm));
	r = scan_hand_consume(scan, fd, &handed);
	return r < 0 && r != -ENOMEM ? 1 : r;
}

/* Adds the devices of a packet to the last of the others. */
static int daemon_client_add_parts(struct daemon_client *remote, const void *parts, uint32_t count)
{
	struct daemon_client_other *other = &remote->others[remote->count - 1];

	for (uint32_t i = 0; i < count; i++) {
		struct native_part *grown;
		int r;

		if (remote->part_count >= DAEMON_CLIENT_PARTS_MAX)
			return DAEMON_CLIENT_GARBAGE;
		grown = array_grow(remote->parts, &remote->part_capacity, remote->part_count + 1,
				   sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		remote->parts = grown;
		r = native_part_get(parts, i, &grown[remote->part_count]);
		if (r < 0)
			return DAEMON_CLIENT_GARBAGE;
		remote->part_count++;
		other->count++;
	}
	return 0;
}

static int daemon_client_add_other(struct daemon_client *remote,
				   const struct native_process *process)
{
	struct daemon_client_other *others;

	if (remote->count >= DAEMON_CLIENT_OTHERS_MAX)
		return DAEMON_CLIENT_GARBAGE;
	others = array_grow(remote->others, &remote->capacity, remote->count + 1, sizeof(*others));
	if (!others)
		return -ENOMEM;
	remote->others = others;
	others[remote->count++] = (struct daemon_client_other){
		.process = *process,
		.first = remote->part_count,
	};
	return 0;
}

int daemon_client_take_consume(struct daemon_client *remote, struct scan *scan, const void *payload,
			       size_t length, int fd)
{
	CLEANUP_CLOSE int owned = fd;
	bool before = remote->lacks_totals;
	struct native_process process;
	const void *parts;
	int r;

	if (native_process_decode(payload, length, &process, &parts) < 0)
		return DAEMON_CLIENT_GARBAGE;
	if (remote->skips || remote->continues) {
		r = remote->skips ? 0 : daemon_client_add_parts(remote, parts, process.parts);
	} else if (scan_has(scan, (struct book_id){process.book_device, process.book_inode})) {
		/* We found it ourselves. */
		remote->skips = true;
		r = 0;
	} else {
		if (process.flags & NATIVE_HAS_BOOK) {
			remote->lost_books += owned < 0;
			remote->lacks_totals = true; /* unless the scan takes it */
		}
		r = owned < 0
			    ? 1
			    : daemon_client_hand_consume(scan, &process, cleanup_steal_fd(&owned));
		if (r < 0)
			return r;
		remote->skips = r == 0;
		if (r == 0) {
			remote->lacks_totals = before;
		} else {
			/* We may not see it, or cannot read it. */
			r = daemon_client_add_other(remote, &process);
			if (r == 0)
				r = daemon_client_add_parts(remote, parts, process.parts);
		}
	}
	remote->continues = process.flags & NATIVE_CONTINUES && !remote->skips;
	remote->skips = process.flags & NATIVE_CONTINUES && remote->skips;
	return r;
}

struct daemon_client_round {
	struct daemon_client *remote;
	struct scan *scan;
};

static int daemon_client_packet(void *context, const void *payload, size_t length, int fd)
{
	struct daemon_client_round *round = context;

	return daemon_client_take_consume(round->remote, round->scan, payload, length, fd);
}

static void daemon_client_forget(struct daemon_client *remote)
{
	remote->count = remote->part_count = 0;
	remote->continues = remote->skips = remote->lacks_totals = false;
}

int daemon_client_refresh(struct daemon_client *remote, struct scan *scan)
{
	struct daemon_client_round round = {.remote = remote, .scan = scan};
	struct native_request request;
	int r;

	native_request_init(&request, NATIVE_LIST);
	request.want = NATIVE_WANT_BOOKS | NATIVE_WANT_REST;
	request.accepts = NATIVE_ACCEPTS_JOINED | NATIVE_ACCEPTS_OCCUPIED;
	daemon_client_forget(remote);
	remote->lost_books = 0;
	r = daemon_client_talk(remote, &request, daemon_client_packet, &round);
	if (r == 0 && remote->lacks_totals) {
		/* Then ask for the totals of all that are not in the scan. */
		request.want = NATIVE_WANT_TOTALS;
		daemon_client_forget(remote);
		r = daemon_client_talk(remote, &request, daemon_client_packet, &round);
	}
	scan_sort(scan);
	return r;
}

size_t daemon_client_count(const struct daemon_client *remote)
{
	return remote->count;
}

bool daemon_client_has(const struct daemon_client *remote, struct book_id id)
{
	for (size_t i = 0; i < remote->count; i++) {
		const struct native_process *process = &remote->others[i].process;

		if (process->book_inode == id.inode && process->book_device == id.device)
			return true;
	}
	return false;
}

static const char *daemon_client_field(struct snapshot *snapshot, const char *field, size_t size)
{
	size_t length = strnlen(field, size);

	return length ? snapshot_text(snapshot, field, length) : NULL;
}

static int daemon_client_collect_part(struct snapshot *snapshot, uint32_t index,
				      const struct native_part *from)
{
	struct snapshot_part *part = snapshot_part(snapshot, index, from->device);

	if (!part)
		return -ENOMEM;
	if (from->flags & NATIVE_PART_OCCUPIED) {
		for (uint32_t type = 0; type < NATIVE_TYPES; type++) {
			const struct native_memory *told = &from->memory[type];

			part->memory[type].occupied =
				(struct snapshot_occupied){told->used, told->buffers};
			part->memory[type].unplaced_frees = told->unknown_frees;
		}
		return 0;
	}
	part->facts = (struct snapshot_facts){
		.declared = from->flags & NATIVE_DECLARED,
		.remote = from->flags & NATIVE_REMOTE,
		.unique_id = from->unique_id,
		.arch = daemon_client_field(snapshot, from->arch, sizeof(from->arch)),
		.card = daemon_client_field(snapshot, from->card, sizeof(from->card)),
		.closed_ns = from->closed_ns,
	};
	part->is_told = native_part_number(from, NATIVE_PART_JOINED) > 0;
	if (part->is_told) {
		part->joined = native_part_number(from, NATIVE_PART_JOINED) - 1;
		part->unmatched = native_part_number(from, NATIVE_PART_UNMATCHED);
	}
	for (uint32_t type = 0; type < NATIVE_TYPES; type++) {
		const struct native_memory *told = &from->memory[type];
		struct snapshot_memory memory = {
			.used = told->used,
			.buffers = told->buffers,
			.peak = told->peak,
			.allocs = told->allocs,
			.frees = told->frees,
			.unknown_frees = told->unknown_frees,
			.double_frees = told->double_frees,
			.size_changes = told->size_changes,
			.realloc_live = told->realloc_live,
			.ambiguous_frees = told->ambiguous_frees,
			.hooked = told->hooked,
			.overflow_frees = told->overflow_frees,
			.last_ns = told->last_ns,
			.bound = told->bound,
			.peak_is_unknown = told->flags & NATIVE_PEAK_UNKNOWN,
		};

		part->facts.capacity[type] = told->capacity;
		snapshot_add_memory(&part->memory[type], &memory);
		part->memory[type].peak_is_unknown |= memory.peak_is_unknown;
	}
	return 0;
}

static int daemon_client_collect_other(struct daemon_client *remote,
				       const struct daemon_client_other *other,
				       struct snapshot *snapshot)
{
	const struct native_process *told = &other->process;
	const char *source = types_source_name(told->source);
	struct snapshot_process process = {
		.id = {told->pid, told->start_ticks},
		.ns_pid = told->ns_pid,
		.start_ns = told->start_ns,
		.comm = snapshot_text(snapshot, told->comm,
				      strnlen(told->comm, sizeof(told->comm))),
		.user_id = told->user,
		.maker_id = told->maker,
		.container =
			daemon_client_field(snapshot, told->container, sizeof(told->container)),
		.source = source ? source : "book",
		.alive = told->flags & NATIVE_ALIVE,
		.exact = told->flags & NATIVE_EXACT,
		.last_ns = told->last_ns,
	};
	uint32_t index;
	char user[64];
	int r;

	proc_user_name(told->user, user, sizeof(user));
	process.user = snapshot_text(snapshot, user, strlen(user));
	memcpy(&process.rejected, told->rejected, sizeof(process.rejected));
	if (!process.comm || !process.user)
		return -ENOMEM;
	r = snapshot_add_process(snapshot, &process, &index);
	if (r == 0)
		snapshot->processes[index].books--; /* the daemon keeps its book */
	for (size_t i = 0; r == 0 && i < other->count; i++)
		r = daemon_client_collect_part(snapshot, index, &remote->parts[other->first + i]);
	return r;
}

int daemon_client_collect(struct daemon_client *remote, const struct snapshot_request *request,
			  struct snapshot *snapshot)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < remote->count; i++)
		r = daemon_client_collect_other(remote, &remote->others[i], snapshot);
	daemon_client_note(remote, request, snapshot);
	return r;
}

void daemon_client_note(const struct daemon_client *remote, const struct snapshot_request *request,
			struct snapshot *snapshot)
{
	bool details = request->buffers || request->incidents;
	size_t hidden = 0;

	for (size_t i = 0; i < remote->count; i++)
		hidden += filter_wants_pid(&request->filter, remote->others[i].process.pid);
	if (remote->outcome != 0 && remote->outcome != DAEMON_CLIENT_NONE)
		snapshot_note(snapshot, "%s; only what can be seen without it is shown",
			      remote->reason);
	if (remote->lost_books)
		snapshot_note(snapshot, "%" PRIu32 " book%s could not be opened: too many files",
			      remote->lost_books, remote->lost_books == 1 ? "" : "s");
	else if (details && hidden)
		snapshot_note(snapshot, "details of %zu process%s of other users are not shown",
			      hidden, hidden == 1 ? "" : "es");
}
