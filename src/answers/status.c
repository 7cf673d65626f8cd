/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.status/1. */

#include "answers/status.h"

#include "answers/document.h"

#define ROW struct status_door

static const struct field status_doors[] = {
	FIELD("name", TEXT, name, .names = health_door_name),
	FIELD_OR_NULL("where", TEXT, where, .says = "path or address"),
	FIELD("open", BOOL, is_open),
	FIELD_OR_NULL("problem", TEXT, problem, .says = "what is in the way, null if it is open"),
	FIELD_OR_NULL(
		"pid", SHORT, pid, .least = 1,
		.says = "of the process that has it, null if there is none or it is not known"),
	FIELD_IF(has_user, "user_id", SHORT, user_id,
		 .says = "of that process, or of the file in the way"),
	FIELD("since_ns", TIME, since_ns, .says = "the last change"),
	FIELD_END,
};

#undef ROW
#define ROW struct status_limit

static const struct field status_limits[] = {
	FIELD("metric", TEXT, metric, .says = "its counter in /metrics, without _total"),
	FIELD("help", TEXT, help, .says = "what is counted"),
	FIELD("count", NUMBER, count, .least = 1),
	FIELD_END,
};

#undef ROW
#define ROW struct health

static const struct field status_past[] = {
	FIELD("running", BOOL, store_runs, .says = "whether it can be written at present"),
	FIELD("bytes", BYTES, store_bytes),
	FIELD("queued", NUMBER, store_queued),
	FIELD("written", NUMBER, store_written),
	FIELD("dropped", NUMBER, store_dropped),
	FIELD("dropped_leaks", NUMBER, limits[QUOTA_STORE_LEAKS], .is_later = true,
	      .says = "of them leak reports"),
	FIELD("joined", NUMBER, limits[QUOTA_STORE_JOINED], .is_later = true,
	      .says = "incidents that were counted with one of the same call site that waited"),
	FIELD_END,
};

static const struct field status_old_clients[] = {
	FIELD("connections", NUMBER, legacy_connections),
	FIELD("messages", NUMBER, legacy_messages),
	FIELD("refused", NUMBER, legacy_refused),
	FIELD("taken_over", NUMBER, legacy_taken_over, .is_later = true,
	      .says = "connections that an earlier daemon had"),
	FIELD("in_doubt", NUMBER, legacy_in_doubt, .is_later = true,
	      .says = "messages during which an earlier daemon was killed"),
	FIELD_END,
};

static const struct field status_flight[] = {
	FIELD("bytes", BYTES, flight.bytes, .says = "in memory"),
	FIELD("bytes_max", BYTES, flight.bytes_max),
	FIELD("events", NUMBER, flight.events, .says = "that were read"),
	FIELD("missed", NUMBER, limits[QUOTA_FLIGHT_MISSED],
	      .says = "that were overwritten before they could be read"),
	FIELD("late_users", SHORT, flight.late_users,
	      .says = "users of whose processes some were missed in the last ten seconds: there "
		      "are keyframes only"),
	FIELD("rounds", NUMBER, flight.rounds),
	FIELD("dropped", NUMBER, limits[QUOTA_FLIGHT_DROPPED],
	      .says = "intervals between keyframes that had to go before their time"),
	FIELD("left_out", NUMBER, limits[QUOTA_FLIGHT_LEFT_OUT],
	      .says = "books that were too large or too many"),
	FIELD("files", NUMBER, flight.files, .says = "recordings that were written"),
	FIELD("refused", NUMBER, limits[QUOTA_FLIGHT_REFUSED],
	      .says = "that were not: too many, or too soon after another"),
	FIELD("failed", NUMBER, limits[QUOTA_FLIGHT_FAILED], .says = "that could not be"),
	FIELD_END,
};

#undef ROW
#define ROW struct status_row

static const struct field status_running[] = {
	FIELD("pid", SHORT, pid, .least = 1),
	FIELD("user_id", SHORT, user_id),
	FIELD_OR_NULL("version", TEXT, health.version),
	FIELD_OR_NULL("socket", TEXT, health.socket),
	FIELD_OR_NULL("http", TEXT, health.http,
		      .says = "address and port, null if it is not served"),
	FIELD("start_ns", TIME, health.start_ns),
	FIELD("you_see_all", BOOL, you_see_all,
	      .says = "whether the asker may see the details of all processes"),
	FIELD("books", NUMBER, health.books, .says = "of processes that live now"),
	FIELD("books_refused", NUMBER, health.books_refused),
	FIELD("ended", NUMBER, health.ended, .says = "processes since the start of the daemon"),
	FIELD("leaked", NUMBER, health.leaked, .says = "of them with something left"),
	FIELD("unobserved_exits", NUMBER, health.unobserved_exits,
	      .says = "processes that ended while nobody held their books"),
	FIELD_STRUCT("past", health, status_past),
	FIELD_STRUCT("old_clients", health, status_old_clients,
		     .says = "of the old socket protocol"),
	FIELD_STRUCT("flight", health, status_flight, .absent = FIELD_NULL,
		     .known = FIELD_KNOWN(has_flight),
		     .says = "the flight recorder, which keeps the last events of all processes in "
			     "memory; null: it is off"),
	FIELD_ARRAY("doors", doors, door_count, status_doors,
		    .says = "sockets, ports and files that the daemon should have; it runs without "
			    "them and tries again"),
	FIELD_ARRAY("limits", limits, limit_count, status_limits,
		    .says = "limits that were reached since the start of the daemon; "
			    "docs/limits.md lists all"),
	FIELD_END,
};

const struct field status_fields[] = {
	FIELD("running", BOOL, is_running, .says = "false: then only the notes follow"),
	FIELD_MORE(status_running, .absent = FIELD_NOTHING, .known = FIELD_KNOWN(is_running)),
	FIELD_END,
};

const struct document status_document = {
	.schema = "ttmem.status/1",
	.title = "ttmem status --json: whether ttmemd runs, and how it is",
	.members = status_fields,
};

static void status_set_limits(struct status_row *row)
{
	row->limit_count = 0;
	for (uint32_t i = 0; i < QUOTA_IDS; i++) {
		const struct quota_metric *metric = quota_metric(i);

		if (metric->name && row->health.limits[i])
			row->limits[row->limit_count++] = (struct status_limit){
				.metric = metric->name,
				.help = metric->help,
				.count = row->health.limits[i],
			};
	}
}

void status_set_lists(struct status_row *row)
{
	status_set_limits(row);
	row->door_count = 0;
	for (uint32_t i = 0; i < HEALTH_DOORS; i++) {
		const struct health_door *door = &row->health.doors[i];

		if (!door->is_wanted)
			continue;
		row->doors[row->door_count++] = (struct status_door){
			.name = health_door_name(i),
			.where = door->where,
			.problem = *door->problem ? door->problem : NULL,
			.is_open = door->is_open,
			.pid = door->pid,
			.user_id = door->user_id,
			.has_user = door->user_id != HEALTH_NOBODY,
			.since_ns = door->since_ns,
		};
	}
}
