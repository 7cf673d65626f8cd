/* SPDX-License-Identifier: Apache-2.0 */

/* Serves other threads: snapshots, documents, the daemon's health. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "answers/history.h"
#include "answers/peak.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "book/read/view.h"
#include "daemon/daemon.h"
#include "daemon/fleet/fleet.h"
#include "daemon/notify/log-writer.h"
#include "daemon/recorder/recorder-documents.h"
#include "daemon/registry/collector.h"
#include "daemon/registry/tracked.h"
#include "daemon/symbols/symbols-namer.h"
#include "model/health.h"
#include "model/history.h"
#include "model/query.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "source/books/address-history.h"
#include "source/proc/proc.h"
#include "store/store.h"
#include "web/export/push.h"

static int provide_snapshot_once(struct daemon *daemon, const struct snapshot_request *request,
				 struct snapshot **ret_snapshot)
{
	const struct collector_wish wish = {
		.request = request,
		.asker = request->asker ? request->asker->peer : NULL,
	};

	return collector_read(daemon->collector, &wish, ret_snapshot);
}

/*
 * Clients that want buffers want names; names that must be looked up are there in the second
 * reading.
 */
static int provide_snapshot(void *context, const struct snapshot_request *request,
			    struct snapshot **ret_snapshot)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct snapshot_request named = *request;
	struct daemon *daemon = context;
	struct snapshot *snapshot, *again;
	int r;

	if (request->at_ns)
		return daemon_moments_snapshot(daemon, request, ret_snapshot);
	if (!request->buffers && !request->is_own)
		return collector_totals(daemon->collector,
					request->since_ns ? request->since_ns
							  : clock_ns(CLOCK_MONOTONIC),
					ret_snapshot);
	if (!request->buffers || request->unnamed)
		return provide_snapshot_once(daemon, request, ret_snapshot);
	symbols_namer_init(&namer, daemon->symbols, false);
	named.namer = &namer.namer;
	r = provide_snapshot_once(daemon, &named, &snapshot);
	if (r < 0)
		return r;
	if (symbols_namer_learn(&namer, SYMBOLS_NAMER_NOTES_MAX) &&
	    provide_snapshot_once(daemon, &named, &again) == 0) {
		snapshot_free(snapshot);
		snapshot = again;
	}
	*ret_snapshot = snapshot;
	return 0;
}

/*
 * Two threads query the history, each with a reader of its own: the web thread, and the query
 * worker for clients of the native socket.
 */
int daemon_reader(struct daemon *daemon, const struct query_asker *asker,
		  struct store_reader **ret_reader)
{
	struct store_reader **reader =
		asker && !asker->is_tcp ? &daemon->query_reader : &daemon->web_reader;
	int r = 0;

	if (!daemon->store)
		return -EOPNOTSUPP;
	if (!*reader)
		r = store_reader_open(daemon->store, reader);
	if (r == 0)
		*ret_reader = *reader;
	return r;
}

static bool provide_may_see(const struct query_asker *asker, uint32_t maker, const char *namespaces)
{
	return !asker || access_may_see(asker->peer, maker, namespaces);
}

static bool provide_incident_to(void *context, const struct query_asker *asker,
				const struct web_incident *incident)
{
	(void)context; /* the rule needs nothing else */
	return provide_may_see(asker, incident->maker, incident->namespaces);
}

static void provide_user_name(void *context, uint32_t user, char *ret_name, size_t size)
{
	(void)context; /* the system's database */
	proc_user_name(user, ret_name, size);
}

bool daemon_may_see(const void *context, uint32_t maker, const char *namespaces)
{
	return access_may_see(context, maker, namespaces);
}

/* What a client may see of the history; without an asker the token has decided. */
static struct recorder_scope provide_scope(const struct daemon *daemon,
					   const struct query_asker *asker)
{
	struct recorder_scope scope = {.sees = {.may_see = NULL}, .state = daemon->config->state};

	if (asker && !asker->sees_all)
		scope.sees = (struct store_sees){.context = asker->peer, .may_see = daemon_may_see};
	return scope;
}

/*
 * Writes what the books know by now to the store, so that the command misses nothing: one reading
 * serves every client that had asked when it began. Over TCP the next regular reading is soon
 * enough.
 */
static void provide_refresh(struct daemon *daemon, const struct query_asker *asker)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!asker || asker->is_tcp || daemon->refreshed_ns > asker->came_ns)
		return;
	daemon->refreshed_ns = now;
	recorder_look(daemon->recorder);
	if (daemon->store)
		(void)store_flush(daemon->store, 1000); /* unwritten rows are not shown */
}

static int provide_past(struct daemon *daemon, const struct query *query,
			const struct query_asker *asker, recorder_document_fn *write,
			struct emit *json)
{
	const struct recorder_scope scope = provide_scope(daemon, asker);
	struct store_reader *reader = NULL;
	int r = daemon_reader(daemon, asker, &reader);

	if (r == 0 && !query->cursor)
		provide_refresh(daemon, asker);
	return r < 0 ? r : write(reader, query, &scope, json);
}

static int provide_leaks(void *context, const struct query *query, const struct query_asker *asker,
			 struct emit *json)
{
	return provide_past(context, query, asker, recorder_documents_leaks, json);
}

static int provide_ended(void *context, const struct query *query, const struct query_asker *asker,
			 struct emit *json)
{
	return provide_past(context, query, asker, recorder_documents_ended, json);
}

static int provide_incidents(void *context, const struct query *query,
			     const struct query_asker *asker, struct emit *json)
{
	return provide_past(context, query, asker, recorder_documents_incidents, json);
}

/* What was kept of the living that the asker may see. Frees an earlier result first. */
static int provide_kept(struct daemon *daemon, const struct query *query,
			const struct query_asker *asker, struct namer *namer,
			struct snapshot **snapshot)
{
	const struct snapshot_request request = {.filter = query->filter, .namer = namer};
	struct book_list *book_list;
	int r = 0;

	snapshot_free(*snapshot);
	*snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	if (!*snapshot)
		return -ENOMEM;
	book_list = registry_books(daemon->registry);
	for (size_t i = 0; r == 0 && i < book_list->count; i++) {
		struct tracked *tracked = book_list->list[i];

		if (provide_may_see(asker, tracked->maker, tracked->namespaces))
			r = tracked_collect_kept(tracked, &request, *snapshot);
	}
	book_list_unref(book_list);
	return r == 0 ? snapshot_finish(*snapshot) : r;
}

/* The living first. */
static int provide_peaks_of(struct daemon *daemon, const struct query *query,
			    const struct store_sees *sees, const struct snapshot *living,
			    struct emit *json)
{
	CLEANUP(peak_list_deinit) struct peak_list list = PEAK_LIST_NULL;
	struct snapshot **ended;
	size_t count;
	int r = recorder_peaks_ended(daemon->recorder, sees, &ended, &count);

	if (r == 0)
		r = peak_list_add(&list, living, &query->filter, query->by);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = peak_list_add(&list, ended[i], &query->filter, query->by);
	if (r == 0)
		document_put(json, &peak_document, living, &list);
	for (size_t i = 0; i < count; i++)
		snapshot_free(ended[i]);
	free(ended);
	return r;
}

static int provide_peaks(void *context, const struct query *query, const struct query_asker *asker,
			 struct emit *json)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	const struct recorder_scope scope = provide_scope(context, asker);
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	struct daemon *daemon = context;
	int r;

	symbols_namer_init(&namer, daemon->symbols, false);
	r = provide_kept(daemon, query, asker, &namer.namer, &snapshot);
	if (r == 0 && symbols_namer_learn(&namer, SYMBOLS_NAMER_NOTES_MAX))
		r = provide_kept(daemon, query, asker, &namer.namer, &snapshot);
	return r == 0 ? provide_peaks_of(daemon, query, &scope.sees, snapshot, json) : r;
}

static int provide_series(void *context, const struct query *query, const struct query_asker *asker,
			  struct emit *json)
{
	struct store_reader *reader = NULL;
	int r = daemon_reader(context, asker, &reader);

	return r < 0 ? r : recorder_documents_series(reader, query, json);
}

static int provide_trails(struct daemon *daemon, uint64_t address,
			  const struct snapshot_request *request, struct snapshot *snapshot,
			  struct history *history)
{
	struct book_list *book_list = registry_books(daemon->registry);
	struct view *view = calloc(1, sizeof(*view));
	int r = view ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < book_list->count; i++) {
		struct tracked *tracked = book_list->list[i];

		if (!provide_may_see(request->asker, tracked->maker, tracked->namespaces))
			continue;
		pthread_mutex_lock(&tracked->book_lock);
		r = address_history_collect(tracked->book, address, request, view, snapshot,
					    history);
		pthread_mutex_unlock(&tracked->book_lock);
	}
	if (view)
		view_deinit(view);
	free(view);
	book_list_unref(book_list);
	return r;
}

/* Reads the history of the address from the books; frees an earlier result first. */
static int provide_lives(struct daemon *daemon, const struct query *query,
			 const struct snapshot_request *request, struct snapshot **snapshot,
			 struct history *history)
{
	history_deinit(history);
	snapshot_free(*snapshot);
	*snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	if (!*snapshot)
		return -ENOMEM;
	return query->only_past
		       ? 0
		       : provide_trails(daemon, query->address, request, *snapshot, history);
}

/*
 * What the database has on the address. Without a database there is nothing. While it fails, or if
 * there is too much, the document says so.
 */
static bool provide_past_of(struct daemon *daemon, const struct query *query,
			    const struct query_asker *asker, struct snapshot *snapshot,
			    struct recorder_rows *ret_rows)
{
	struct recorder_scope scope = provide_scope(daemon, asker);
	struct store_reader *reader = NULL;
	int r;

	scope.has_address = true;
	scope.address = query->address;
	scope.filter = &query->filter;
	provide_refresh(daemon, asker);
	r = daemon_reader(daemon, asker, &reader);
	if (r == -EOPNOTSUPP)
		return false;
	if (r == 0)
		r = recorder_documents_address(reader, &scope, query->filter.pid,
					       clock_ms(CLOCK_MONOTONIC) + RECORDER_ADDRESS_MS,
					       ret_rows);
	if (r < 0)
		snapshot_note(snapshot, "the past cannot be read at present: %s", strerror(-r));
	else if (ret_rows->is_cut)
		snapshot_note(snapshot, "the past of this address is too long: only its newest "
					"part is listed");
	snapshot->exact = snapshot->exact && r == 0 && !ret_rows->is_cut;
	return r == 0;
}

static int provide_history(void *context, const struct query *query,
			   const struct query_asker *asker, struct emit *json)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct daemon *daemon = context;
	struct snapshot_request request = {.filter = query->filter, .asker = asker};
	CLEANUP(recorder_documents_rows_deinit) struct recorder_rows rows = {.leaks = NULL};
	struct history history = HISTORY_NULL;
	struct snapshot *snapshot = NULL, *totals = NULL;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int r;

	/* Without them a device is known by what its process says. */
	(void)collector_totals(daemon->collector, now - bits_min(now, NS_PER_S), &totals);

	symbols_namer_init(&namer, daemon->symbols, false);
	request.namer = &namer.namer;
	request.totals = totals;
	r = provide_lives(daemon, query, &request, &snapshot, &history);
	if (r == 0 && symbols_namer_learn(&namer, SYMBOLS_NAMER_NOTES_MAX))
		r = provide_lives(daemon, query, &request, &snapshot, &history);
	if (r == 0) {
		snapshot_take_joins(totals, snapshot);
		r = snapshot_finish(snapshot);
	}
	snapshot_free(totals);
	if (r == 0) {
		bool has_past = provide_past_of(context, query, asker, snapshot, &rows);
		const struct history_past past = {.leaks_json = rows.leaks,
						  .incidents_json = rows.incidents};
		const struct history_answer answer = {
			.snapshot = snapshot,
			.history = &history,
			.past = has_past ? &past : NULL,
			.address = query->address,
		};

		document_put(json, &history_document, snapshot, &answer);
	}
	history_deinit(&history);
	snapshot_free(snapshot);
	return r;
}

/* The daemon's lock is held. */
static void provide_doors(const struct daemon *daemon, const struct store_health *store,
			  struct health *health)
{
	struct health_door *history = &health->doors[HEALTH_DOOR_HISTORY];

	for (size_t i = 0; i < HEALTH_DOORS; i++)
		health->doors[i] = daemon->doors[i].shown;
	*history = (struct health_door){
		.is_wanted = true,
		/* At the start it is not known yet. */
		.is_open = store->running || !*store->reason,
		.user_id = HEALTH_NOBODY,
		.since_ns = store->reason_ns ? store->reason_ns : daemon->start_ns,
		.where = daemon->config->state,
	};
	if (!history->is_open)
		(void)snprintf(history->problem, sizeof(history->problem), "%s", store->reason);
	health->http = *daemon->web_address ? daemon->web_address : NULL;
	health->has_fleet = daemon->fleet != NULL;
}

static void provide_flight(const struct daemon *daemon, struct health *health)
{
	struct black_box_counts counts;

	if (!daemon->black_box)
		return;
	black_box_counts(daemon->black_box, &counts);
	health->flight = (struct health_flight){
		.runs = true,
		.bytes = counts.flight.size,
		.bytes_max = daemon->config->flight.size,
		.events = counts.flight.events,
		.rounds = counts.flight.rounds,
		.files = counts.files,
		.late_users = counts.flight.late,
	};
	health->limits[QUOTA_FLIGHT_MISSED] = counts.flight.missed;
	health->limits[QUOTA_FLIGHT_DROPPED] = counts.flight.dropped;
	health->limits[QUOTA_FLIGHT_LEFT_OUT] = counts.flight.left_out;
	health->limits[QUOTA_FLIGHT_REFUSED] = counts.refused;
	health->limits[QUOTA_FLIGHT_FAILED] = counts.failed;
}

/* As the program that serves old clients tells of itself. The daemon's lock is held. */
static void provide_legacy(const struct daemon *daemon, struct health *health)
{
	const struct link_state *state = &daemon->link_state;

	health->legacy_connections = state->connections;
	health->legacy_messages = state->messages;
	health->legacy_taken_over = state->taken_over;
	health->legacy_in_doubt = state->in_doubt;
	health->legacy_refused = state->refused;
	health->legacy_bytes = state->memory;
	health->limits[QUOTA_LEGACY_ROOM] = state->refused_room;
	health->limits[QUOTA_LEGACY_CONNECTIONS] = state->connections_refused;
	health->limits[QUOTA_LEGACY_PAUSES] = state->accept_pauses;
	health->limits[QUOTA_LEGACY_SLOW] = state->connections_slow;
	health->limits[QUOTA_LOG_LEFT_OUT] += state->log_left_out;
}

static uint64_t provide_records(void *context)
{
	struct daemon *daemon = context;
	struct store_health store = {0};

	if (daemon->store)
		store_health(daemon->store, &store);
	return store.records;
}

static void provide_health(void *context, struct health *ret_health)
{
	struct daemon *daemon = context;
	struct health health = {
		.start_ns = daemon->start_ns,
		.version = DAEMON_VERSION,
		.socket = daemon->config->socket,
	};
	struct push *push = __atomic_load_n(&daemon->push, __ATOMIC_ACQUIRE);
	struct store_health store = {0};

	if (daemon->store)
		store_health(daemon->store, &store);
	health.store_runs = store.running;
	health.store_queued = store.queued;
	health.store_written = store.written;
	health.store_dropped = store.dropped_records + store.dropped_samples;
	health.store_bytes = store.size;
	for (uint32_t i = 0; i < QUOTA_IDS; i++)
		health.limits[i] = quota_counted(i);
	pthread_mutex_lock(&daemon->lock);
	health.books = daemon->registry_counts.processes;
	health.books_refused = daemon->registry_counts.refused;
	health.ended = daemon->registry_counts.ended;
	health.unobserved_exits = daemon->registry_counts.unobserved_exits;
	health.exits_waiting = daemon->exits.books;
	health.exits_waiting_bytes = daemon->exits.bytes;
	provide_doors(daemon, &store, &health);
	/* As published together: who sees a refusal sees the memory that led to it. */
	provide_legacy(daemon, &health);
	pthread_mutex_unlock(&daemon->lock);
	health.limits[QUOTA_STORE_LEAKS] = store.dropped_leaks;
	health.limits[QUOTA_STORE_JOINED] = store.joined;
	health.limits[QUOTA_STORE_CUT] = store.cut;
	provide_flight(daemon, &health);
	health.leaked = recorder_leaked(daemon->recorder);
	recorder_incidents(daemon->recorder, health.incidents);
	recorder_last_hour(daemon->recorder, &health.hour);
	recorder_tally(daemon->recorder, &health.past);
	if (push) {
		struct push_counts push_now;

		push_counts(push, &push_now);
		health.pushes = true;
		health.push_sent = push_now.sent;
		health.push_failed = push_now.failed;
		health.limits[QUOTA_PUSH] = push_now.dropped;
		health.push_partial = push_now.partial;
		health.push_queued = push_now.queued;
	}
	health.lines_dropped = log_writer_dropped(daemon->log_writer);
	*ret_health = health;
}

static void provide_leak_sites(void *context, struct leak_sites *ret_sites)
{
	struct daemon *daemon = context;

	recorder_leak_sites(daemon->recorder, ret_sites);
}

static int provide_fleet(void *context, const bool *stop, struct emit *json)
{
	struct daemon *daemon = context;

	return fleet_document(daemon->fleet, stop, json);
}

void daemon_provide(struct daemon *daemon, struct web_provider *ret_provider)
{
	*ret_provider = (struct web_provider){
		.context = daemon,
		.snapshot = provide_snapshot,
		.reach = daemon_moments_reach,
		.moments = daemon_moments_list,
		.leaks = provide_leaks,
		.ended = provide_ended,
		.incidents = provide_incidents,
		.history = provide_history,
		.series = provide_series,
		.peaks = provide_peaks,
		.growth = daemon_growth,
		.commands = daemon_commands,
		.dump = daemon_dump,
		.leak_sites = provide_leak_sites,
		.fleet = daemon->fleet ? provide_fleet : NULL,
		.may_see = provide_incident_to,
		.user_name = provide_user_name,
		.sessions = daemon->sessions,
		.health = provide_health,
		.records = provide_records,
	};
}
