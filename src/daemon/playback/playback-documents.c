/* SPDX-License-Identifier: Apache-2.0 */

/* Documents that are about the whole recording: as it is at its end. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "answers/incidents.h"
#include "answers/peak.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "daemon/flight/black-box.h"
#include "daemon/flight/moment-list.h"
#include "daemon/playback/playback.h"
#include "model/query.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "recording/json/recorded-ended.h"
#include "recording/json/recorded-leaks.h"
#include "recording/json/recorded-series.h"
#include "recording/read/recording-source.h"

static int playback_write_leaks(struct playback *playback, const struct query *query,
				struct emit *json)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct snapshot_request request = {.buffers = true,
						 .filter = {.pid = query->filter.pid}};
	CLEANUP(recorded_leaks_deinit)
	struct recorded_leaks leaks = {.recording = playback->recording, .query = query};
	struct source *books = NULL;
	int r = playback_take(playback, &request, &snapshot);

	if (r == 0)
		r = playback_books(playback, recording_facts(playback->recording)->end_ns, &books);
	if (r < 0)
		return r;
	leaks.scan = recording_source_scan(books);
	leaks.snapshot = snapshot;
	r = recorded_leaks_init(&leaks);
	if (r == 0)
		recorded_leaks_put(json, &leaks);
	return r;
}

/* There is one page: who asks for another one has made its cursor up. */
int playback_leaks(void *context, const struct query *query, const struct query_asker *asker,
		   struct emit *json)
{
	struct playback *playback = context;
	int r;

	if (query->cursor)
		return -EINVAL;
	pthread_mutex_lock(&playback->lock);
	r = playback_write_leaks(playback, query, json);
	pthread_mutex_unlock(&playback->lock);
	return r;
}

static int playback_write_ended(struct playback *playback, const struct query *query,
				struct emit *json)
{
	const struct snapshot *end;
	struct source *books = NULL;
	int r = playback_end(playback, &end);

	if (r == 0)
		r = playback_books(playback, recording_facts(playback->recording)->end_ns, &books);
	if (r < 0)
		return r;
	return recorded_ended_document(json, end, playback->recording, recording_source_scan(books),
				       query);
}

int playback_ended(void *context, const struct query *query, const struct query_asker *asker,
		   struct emit *json)
{
	struct playback *playback = context;
	int r;

	if (query->cursor)
		return -EINVAL;
	pthread_mutex_lock(&playback->lock);
	r = playback_write_ended(playback, query, json);
	pthread_mutex_unlock(&playback->lock);
	return r;
}

/* Recordings do not have those of processes. */
int playback_commands(void *context, const struct query *query, const struct query_asker *asker,
		      struct emit *json)
{
	const struct playback *playback = context;

	(void)query; /* of none there is nothing to choose */
	document_open(json, "ttmem.commands/1", recording_facts(playback->recording)->end_ns);
	emit_open_array(json, "processes");
	emit_close_array(json);
	document_list_end(json, true);
	document_close_bare(json);
	return 0;
}

static int playback_take_incidents(struct playback *playback, uint32_t pid,
				   struct snapshot **ret_snapshot)
{
	const struct snapshot_request request = {.incidents = true, .filter = {.pid = pid}};
	int r;

	pthread_mutex_lock(&playback->lock);
	r = playback_take(playback, &request, ret_snapshot);
	pthread_mutex_unlock(&playback->lock);
	return r;
}

int playback_incidents(void *context, const struct query *query, const struct query_asker *asker,
		       struct emit *json)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	size_t kept = 0;
	int r;

	if (query->cursor)
		return -EINVAL;
	r = playback_take_incidents(context, query->filter.pid, &snapshot);
	if (r < 0)
		return r;
	for (size_t i = 0; i < snapshot->incident_count; i++) {
		const struct snapshot_incident *one = &snapshot->incidents[i];

		if (one->last_ns >= query->since_ns &&
		    (!query->kind || strcmp(query->kind, one->kind) == 0))
			snapshot->incidents[kept++] = *one;
	}
	snapshot->exact = snapshot->exact && kept <= query->limit;
	snapshot->incident_count = bits_min(kept, query->limit);
	document_put(json, &incidents_document, snapshot, snapshot);
	return 0;
}

int playback_series(void *context, const struct query *query, const struct query_asker *asker,
		    struct emit *json)
{
	struct playback *playback = context;
	const struct snapshot *end;
	int r;

	if (query->cursor)
		return -EINVAL;
	pthread_mutex_lock(&playback->lock);
	r = playback_end(playback, &end);
	if (r == 0)
		r = recorded_series_document(json, playback->recording, end, query);
	pthread_mutex_unlock(&playback->lock);
	return r;
}

int playback_peaks(void *context, const struct query *query, const struct query_asker *asker,
		   struct emit *json)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	const struct snapshot_request request = {
		.buffers = true, .at_peak = true, .filter = query->filter};
	struct playback *playback = context;
	int r;

	pthread_mutex_lock(&playback->lock);
	r = playback_take(playback, &request, &snapshot);
	pthread_mutex_unlock(&playback->lock);
	return r < 0 ? r : peak_put(json, snapshot, query->by);
}

static int playback_list_incidents(struct playback *playback, struct moment_list *list)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	int r = playback_take_incidents(playback, list->query->filter.pid, &snapshot);

	for (size_t i = 0; r == 0 && i < snapshot->incident_count; i++) {
		const struct snapshot_incident *incident = &snapshot->incidents[i];
		const struct snapshot_process *process = &snapshot->processes[incident->process];

		r = moment_list_add(list, &(struct moment_list_one){
						  .time_ns = incident->time_ns,
						  .kind = "incident",
						  .process.pid = process->id.pid,
						  .comm = process->comm,
						  .has_device = true,
						  .device = incident->device,
						  .incident = incident->kind,
					  });
	}
	return r;
}

/* Everybody who is let in sees all, so nothing is said of the owners of the books. */
static int playback_list(struct playback *playback, struct moment_list *list)
{
	size_t books = recording_facts(playback->recording)->books;
	CLEANUP_FREE struct black_box_owner *owners = calloc(books + 1, sizeof(*owners));
	const struct black_box_file file = {.fd = -1, .owners = owners, .count = books};
	int r;

	if (!owners)
		return -ENOMEM;
	pthread_mutex_lock(&playback->lock);
	r = moment_list_add_recording(list, playback->recording, &file);
	pthread_mutex_unlock(&playback->lock);
	return r < 0 ? r : playback_list_incidents(playback, list);
}

int playback_moments(void *context, const struct query *query, const struct query_asker *asker,
		     struct emit *json)
{
	CLEANUP(moment_list_deinit) struct moment_list list = {.texts = NULL};
	struct playback *playback = context;
	const struct recording_facts *facts = recording_facts(playback->recording);
	struct query complete = *query;
	int r;

	if (!complete.to_ns)
		complete.to_ns = facts->end_ns;
	r = moment_list_init(&list, &complete, NULL);
	if (r == 0)
		r = playback_list(playback, &list);
	if (r < 0)
		return r;
	moment_list_finish(&list);
	list.reach.exact_from_ns = facts->start_ns;
	moment_list_write(json, &list, facts->end_ns);
	return 0;
}
