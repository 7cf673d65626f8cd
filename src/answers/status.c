/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.status/1. */

#include "answers/status.h"

#include "answers/document.h"

#define ROW struct status_door

static const struct field status_doors[] = {
	FIELD("name", TEXT, name),         FIELD("where", TEXT, where),
	FIELD("open", BOOL, is_open),      FIELD("problem", TEXT, problem),
	FIELD_OR_NULL("pid", SHORT, pid),  FIELD_IF(has_user, "user_id", SHORT, user_id),
	FIELD("since_ns", TIME, since_ns), FIELD_END,
};

#undef ROW
#define ROW struct status_limit

static const struct field status_limits[] = {
	FIELD("metric", TEXT, metric),
	FIELD("help", TEXT, help),
	FIELD("count", NUMBER, count),
	FIELD_END,
};

#undef ROW
#define ROW struct health

static const struct field status_past[] = {
	FIELD("running", BOOL, store_runs),
	FIELD("bytes", BYTES, store_bytes),
	FIELD("queued", NUMBER, store_queued),
	FIELD("written", NUMBER, store_written),
	FIELD("dropped", NUMBER, store_dropped),
	FIELD("dropped_leaks", NUMBER, limits[QUOTA_STORE_LEAKS]),
	FIELD("joined", NUMBER, limits[QUOTA_STORE_JOINED]),
	FIELD_END,
};

static const struct field status_old_clients[] = {
	FIELD("connections", NUMBER, legacy_connections),
	FIELD("messages", NUMBER, legacy_messages),
	FIELD("refused", NUMBER, legacy_refused),
	FIELD("taken_over", NUMBER, legacy_taken_over),
	FIELD("in_doubt", NUMBER, legacy_in_doubt),
	FIELD_END,
};

static const struct field status_flight[] = {
	FIELD("bytes", BYTES, flight.bytes),
	FIELD("bytes_max", BYTES, flight.bytes_max),
	FIELD("events", NUMBER, flight.events),
	FIELD("missed", NUMBER, limits[QUOTA_FLIGHT_MISSED]),
	FIELD("late_users", SHORT, flight.late_users),
	FIELD("rounds", NUMBER, flight.rounds),
	FIELD("dropped", NUMBER, limits[QUOTA_FLIGHT_DROPPED]),
	FIELD("left_out", NUMBER, limits[QUOTA_FLIGHT_LEFT_OUT]),
	FIELD("files", NUMBER, flight.files),
	FIELD("refused", NUMBER, limits[QUOTA_FLIGHT_REFUSED]),
	FIELD("failed", NUMBER, limits[QUOTA_FLIGHT_FAILED]),
	FIELD_END,
};

#undef ROW
#define ROW struct status_row

static const struct field status_running[] = {
	FIELD("pid", SHORT, pid),
	FIELD("user_id", SHORT, user_id),
	FIELD("version", TEXT, health.version),
	FIELD("socket", TEXT, health.socket),
	FIELD("http", TEXT, health.http),
	FIELD("start_ns", TIME, health.start_ns),
	FIELD("you_see_all", BOOL, you_see_all),
	FIELD("books", NUMBER, health.books),
	FIELD("books_refused", NUMBER, health.books_refused),
	FIELD("ended", NUMBER, health.ended),
	FIELD("leaked", NUMBER, health.leaked),
	FIELD("unobserved_exits", NUMBER, health.unobserved_exits),
	FIELD_STRUCT("past", health, status_past),
	FIELD_STRUCT("old_clients", health, status_old_clients),
	FIELD_STRUCT("flight", health, status_flight, .absent = FIELD_NULL,
		     .known = FIELD_KNOWN(has_flight)),
	FIELD_ARRAY("doors", doors, door_count, status_doors),
	FIELD_ARRAY("limits", limits, limit_count, status_limits),
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
	for (size_t i = 0; i < HEALTH_DOORS; i++) {
		const struct health_door *door = &row->health.doors[i];

		if (!door->is_wanted)
			continue;
		row->doors[row->door_count++] = (struct status_door){
			.name = health_door_name((enum health_door_id)i),
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
