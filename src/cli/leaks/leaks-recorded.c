/* SPDX-License-Identifier: Apache-2.0 */

/* The same document as ttmemd's, made of the books in a recording. */

#include "cli/leaks/leaks-recorded.h"

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "cli/common/session.h"
#include "model/json/document.h"
#include "model/sites/group.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "recording/read/recording.h"
#include "source/books/scan.h"

struct leaks_recorded {
	struct emit json;
	struct snapshot *snapshot;
	struct group_list sites;
	uint64_t since_ns;
};

static void leaks_recorded_sites(struct leaks_recorded *leaks, uint32_t process)
{
	struct emit *json = &leaks->json;

	emit_open_array(json, "sites");
	for (size_t i = 0; i < leaks->sites.count; i++) {
		const struct group *site = &leaks->sites.groups[i];

		if (site->process != process)
			continue;
		emit_open_object(json, NULL);
		emit_string(json, "type", types_name(site->type));
		document_names(json, leaks->sites.names + site->first_name,
			       bits_min(site->names, GROUP_NAMES_LISTED), site->names);
		emit_string(json, "phase", site->phase);
		emit_open_array(json, "phases");
		if (site->phase)
			emit_string(json, NULL, site->phase);
		emit_close_array(json);
		document_stack(json, site->stack);
		emit_u64(json, "bytes", site->bytes);
		emit_u64(json, "buffers", site->buffers);
		emit_u64(json, "oldest_ns", site->oldest_ns);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void leaks_recorded_buffers(struct leaks_recorded *leaks, uint32_t process)
{
	uint64_t bytes = 0, count = 0;

	for (size_t i = 0; i < leaks->snapshot->buffer_count; i++) {
		if (leaks->snapshot->buffers[i].process != process)
			continue;
		bytes += leaks->snapshot->buffers[i].size;
		count++;
	}
	emit_u64(&leaks->json, "bytes", bytes);
	emit_u64(&leaks->json, "buffer_count", count);
	emit_u64(&leaks->json, "listed", count);
	leaks_recorded_sites(leaks, process);
	emit_open_array(&leaks->json, "buffers");
	for (size_t i = 0; i < leaks->snapshot->buffer_count; i++) {
		if (leaks->snapshot->buffers[i].process == process)
			document_buffer(&leaks->json, leaks->snapshot,
					&leaks->snapshot->buffers[i]);
	}
	emit_close_array(&leaks->json);
}

static void leaks_recorded_process(struct leaks_recorded *leaks, uint32_t index,
				   const struct recording_owner *owner, bool is_closed)
{
	const struct snapshot_process *process = &leaks->snapshot->processes[index];
	struct emit *json = &leaks->json;
	const int status = owner->ended.status;

	emit_open_object(json, NULL);
	emit_u64(json, "pid", process->pid);
	emit_u64(json, "ns_pid", process->ns_pid);
	emit_string(json, "comm", process->comm);
	emit_string(json, "user", process->user);
	emit_u64(json, "user_id", process->user_id);
	emit_string(json, "container", process->container);
	emit_string(json, "source", process->source);
	emit_u64(json, "start_ns", process->start_ns);
	emit_u64(json, "ended_ns", owner->ended.realtime);
	emit_string(json, "how", is_closed ? "closed" : "died");
	emit_bool(json, "exec", false);
	document_exit(json, owner->ended.is_status_known ? &status : NULL);
	leaks_recorded_buffers(leaks, index);
	emit_close_object(json);
}

static bool leaks_recorded_has(const struct snapshot *snapshot, uint32_t process)
{
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot->buffers[i].process == process)
			return true;
	}
	return false;
}

/* The book that a row of the snapshot is of; NULL = it still lived. */
static const struct scan_book *leaks_recorded_book(const struct scan *scan,
						   const struct snapshot_process *process)
{
	for (size_t i = scan->count; i > 0; i--) {
		const struct scan_book *book = scan->books[i - 1];

		if (!book->alive && !process->alive && book->owner.pid == process->pid &&
		    book->owner.start_ticks == process->start_ticks)
			return book;
	}
	return NULL;
}

static void leaks_recorded_write(struct leaks_recorded *leaks, struct session *session)
{
	const struct recording *recording = session_recording(session);
	const struct scan *scan = session_scan(session);

	document_open_at(&leaks->json, "ttmem.leaks/1", leaks->snapshot);
	emit_open_array(&leaks->json, "processes");
	for (uint32_t i = 0; i < leaks->snapshot->process_count; i++) {
		const struct scan_book *book =
			leaks_recorded_book(scan, &leaks->snapshot->processes[i]);
		const struct recording_owner *owner =
			book ? recording_owner(recording, (size_t)book->inode - 1) : NULL;

		if (owner && owner->ended.realtime >= leaks->since_ns &&
		    leaks_recorded_has(leaks->snapshot, i))
			leaks_recorded_process(leaks, i, owner,
					       book->reader.header.state == BOOK_STATE_CLOSED);
	}
	emit_close_array(&leaks->json);
	document_list_end(&leaks->json, leaks->snapshot->exact);
	document_close(&leaks->json, leaks->snapshot);
}

int leaks_recorded(FILE *out, struct session *session, const struct filter *filter,
		   uint64_t since_ns)
{
	CLEANUP(session_cleanup_snapshot) struct snapshot *snapshot = NULL;
	struct leaks_recorded leaks = {.json = EMIT_INIT(out), .since_ns = since_ns};
	struct snapshot_request request = {.buffers = true, .ended = true, .filter = *filter};
	int r;

	request.namer = session_namer(session);
	r = session_take(session, &request, &snapshot);
	if (r < 0)
		return r;
	leaks.snapshot = snapshot;
	snapshot_sort_buffers(snapshot, SNAPSHOT_BY_SIZE);
	r = group_buffers(snapshot, GROUP_SITE, true, &leaks.sites);
	if (r == 0)
		leaks_recorded_write(&leaks, session);
	group_list_deinit(&leaks.sites);
	return r;
}
