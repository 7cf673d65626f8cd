/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line for each device and type, of a process or of all together. Steps begin at multiples of their
 * length, so that lines of different questions have their points at the same times.
 */

#include "recording/json/recorded-series.h"

#include <errno.h>
#include <stdlib.h>

#include "answers/document.h"
#include "answers/series.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "recording/read/recording.h"

#define RECORDED_SERIES_POINTS 2000u     /* of a line: what a chart can show */
#define RECORDED_SERIES_EVENTS 1000000u  /* of a longer recording only the index is read */
#define RECORDED_SERIES_SAMPLES 1000000u /* of all lines, whatever the step */

struct recorded_line {
	uint32_t device;
	uint64_t unique_id;
	struct series_point *points; /* owned: for each type all of them */
};

struct recorded_series {
	struct recording *recording;
	const struct snapshot *end;
	const struct query *query;
	struct recording_span span;
	uint64_t step_ms;
	size_t count; /* of samples */
	struct recorded_line *lines;
	size_t line_count, capacity;
};

static void recorded_series_deinit(struct recorded_series *series)
{
	for (size_t i = 0; i < series->line_count; i++)
		free(series->lines[i].points);
	free(series->lines);
}

/* How many lines there can be. */
static size_t recorded_series_lines(const struct recorded_series *series)
{
	size_t lines = 0;

	for (size_t i = 0; i < series->end->process_count; i++) {
		const struct snapshot_process *process = &series->end->processes[i];

		if (series->query->filter.pid && process->id.pid == series->query->filter.pid)
			lines += process->part_count;
	}
	if (!series->query->filter.pid)
		lines = series->end->device_count;
	return bits_max(lines, 1) * (series->query->filter.has_type ? 1 : BOOK_TYPES);
}

static size_t recorded_series_count(struct recorded_series *series,
				    const struct recording_span *wanted)
{
	uint64_t step = series->step_ms * NS_PER_MS;

	series->span.from_ns = wanted->from_ns / step * step;
	series->span.to_ns = (wanted->to_ns + step - 1) / step * step;
	return (size_t)((series->span.to_ns - series->span.from_ns) / step);
}

/* The part that was asked for, and its steps. */
static void recorded_series_choose(struct recorded_series *series)
{
	static const uint64_t steps[] = {10, 100, 1000, 10000, 60000};
	const struct recording_facts *facts = recording_facts(series->recording);
	const struct query *query = series->query;
	const struct recording_span wanted = {
		bits_max(query->from_ns, facts->start_ns),
		query->to_ns ? bits_min(query->to_ns, facts->end_ns) : facts->end_ns,
	};
	size_t lines = recorded_series_lines(series), most = RECORDED_SERIES_SAMPLES / lines;

	if (wanted.to_ns <= wanted.from_ns)
		return;
	if (!query->step_ms)
		most = bits_min(most, bits_min(RECORDED_SERIES_POINTS,
					       bits_max(query->limit / lines, 100)));
	most = bits_max(most, 1); /* a file may name any number of devices */
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		if (steps[i] < query->step_ms)
			continue;
		series->step_ms = steps[i];
		series->count = recorded_series_count(series, &wanted);
		if (series->count <= most)
			return;
	}
	/* A recording of many days. */
	series->step_ms *= series->count / most + 1;
	series->count = recorded_series_count(series, &wanted);
}

static struct recorded_line *recorded_series_line(struct recorded_series *series,
						  const struct snapshot_part *part)
{
	uint64_t id = part->facts.unique_id;
	struct recorded_line *line;

	for (size_t i = 0; i < series->line_count; i++) {
		line = &series->lines[i];
		if (line->unique_id == id && (id || line->device == part->device))
			return line;
	}
	line = array_grow(series->lines, &series->capacity, series->line_count + 1, sizeof(*line));
	if (!line)
		return NULL;
	series->lines = line;
	line += series->line_count;
	*line = (struct recorded_line){
		.device = part->device,
		.unique_id = id,
		.points = calloc(BOOK_TYPES * series->count, sizeof(*line->points)),
	};
	if (!line->points)
		return NULL;
	series->line_count++;
	return line;
}

/* Whether an earlier row has the same device: a process that called exec() has two rows. */
static bool recorded_series_is_done(const struct recorded_series *series, size_t process,
				    uint32_t device)
{
	const struct snapshot_process *list = series->end->processes;

	for (size_t i = 0; i < process; i++) {
		for (size_t k = 0; list[i].id.pid == list[process].id.pid && k < list[i].part_count;
		     k++) {
			if (list[i].parts[k].device == device)
				return true;
		}
	}
	return false;
}

static int recorded_series_add(struct recorded_series *series, struct recording_sample *room,
			       uint32_t pid, const struct snapshot_part *part)
{
	const struct recording_filter filter = {.pid = pid, .device = part->device};
	struct recorded_line *line = recorded_series_line(series, part);
	int r;

	if (!line)
		return -ENOMEM;
	r = recording_timeline(series->recording, &filter, &series->span, room, series->count);
	if (r == 0 && recording_facts(series->recording)->events <= RECORDED_SERIES_EVENTS)
		r = recording_timeline_refine(series->recording, &filter, &series->span, room,
					      series->count);
	for (size_t i = 0; r == 0 && i < series->count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			struct series_point *point = &line->points[type * series->count + i];

			/* The index does not count buffers. */
			point->time_ns = room[i].time_ns;
			point->used += room[i].bytes[type];
			point->used_max += room[i].high[type];
		}
	}
	return r;
}

static int recorded_series_read(struct recorded_series *series)
{
	CLEANUP_FREE struct recording_sample *room = calloc(series->count + 1, sizeof(*room));
	const struct query *query = series->query;
	int r = room ? 0 : -ENOMEM;

	for (size_t i = 0; series->count > 0 && i < series->end->process_count; i++) {
		const struct snapshot_process *process = &series->end->processes[i];

		if (query->filter.pid && process->id.pid != query->filter.pid)
			continue;
		for (size_t k = 0; r == 0 && k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			if (!part->summed && !recorded_series_is_done(series, i, part->device) &&
			    filter_wants_device(&query->filter, part->device,
						part->facts.unique_id))
				r = recorded_series_add(series, room, process->id.pid, part);
		}
	}
	return r;
}

/* The points of a line and type, or NULL if nothing was there at any time. */
static const struct series_point *recorded_series_points(const struct recorded_series *series,
							 const struct recorded_line *line,
							 uint32_t type)
{
	struct series_point *points = line->points + type * series->count;
	bool is_used = false;

	for (size_t i = 0; i < series->count; i++) {
		points[i].used_max = bits_max(points[i].used_max, points[i].used);
		is_used |= points[i].used_max > 0;
	}
	return is_used ? points : NULL;
}

/* @ret_rows has room for all types of all lines. Returns how many there are. */
static size_t recorded_series_rows(const struct recorded_series *series,
				   struct series_row *ret_rows)
{
	size_t count = 0;

	for (size_t i = 0; i < series->line_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct recorded_line *line = &series->lines[i];
			struct series_row row = {
				.pid = series->query->filter.pid,
				.device = line->device,
				.device_uid = line->unique_id,
				.type = type,
				.step_s = (double)series->step_ms / 1000,
				.points = recorded_series_points(series, line, type),
				.point_count = series->count,
			};

			if (row.points && filter_wants_type(&series->query->filter, type))
				ret_rows[count++] = row;
		}
	}
	return count;
}

int recorded_series_document(struct emit *json, struct recording *recording,
			     const struct snapshot *end, const struct query *query)
{
	CLEANUP(recorded_series_deinit)
	struct recorded_series series = {.recording = recording, .end = end, .query = query};
	CLEANUP_FREE struct series_row *rows = NULL;
	struct series_answer answer;
	int r;

	recorded_series_choose(&series);
	r = recorded_series_read(&series);
	if (r < 0)
		return r;
	rows = calloc(series.line_count * BOOK_TYPES + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	answer = (struct series_answer){rows, recorded_series_rows(&series, rows)};
	document_open(json, series_document.schema, recording_facts(recording)->end_ns);
	fields_put(json, series_document.members, &answer);
	document_list_end(json, true);
	document_close(json, end);
	return 0;
}
