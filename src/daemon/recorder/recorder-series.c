/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines over time as JSON. The database tells points in the order of time, the document has one line
 * after the other: so a page of points is held and sorted.
 */

#include <errno.h>
#include <stdlib.h>

#include "answers/document.h"
#include "answers/series.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "daemon/recorder/recorder-cursor.h"
#include "daemon/recorder/recorder-documents.h"
#include "model/query.h"
#include "store/store.h"

#define RECORDER_SERIES_NS UINT64_C(900000000000) /* a quarter of an hour */

struct recorder_points {
	const struct filter *filter;
	struct store_point *points;
	size_t count, capacity;
};

static int recorder_series_take(void *context, const struct store_point *point)
{
	struct recorder_points *self = context;
	struct store_point *points;

	if (!filter_wants_device(self->filter, point->device, point->device_uid))
		return 0;
	points = array_grow(self->points, &self->capacity, self->count + 1, sizeof(*points));
	if (!points)
		return -ENOMEM;
	self->points = points;
	points[self->count++] = *point; /* its texts are not looked at any more */
	return 0;
}

static int recorder_series_compare(const void *left, const void *right)
{
	const struct store_point *a = left, *b = right;

	if (a->series != b->series)
		return bits_compare((uint64_t)a->series, (uint64_t)b->series);
	return bits_compare(a->time_ns, b->time_ns);
}

/* A row for each series of the sorted points. 0 or -ENOMEM. */
static int recorder_series_write(struct emit *json, const struct recorder_points *self,
				 uint64_t now, const char *next)
{
	CLEANUP_FREE struct series_row *rows = calloc(self->count + 1, sizeof(*rows));
	CLEANUP_FREE struct series_point *points = calloc(self->count + 1, sizeof(*points));
	struct series_answer answer = {.rows = rows};
	const struct document_about about = {.time_ns = now, .next = next};

	if (!rows || !points)
		return -ENOMEM;
	for (size_t i = 0; i < self->count; i++) {
		const struct store_point *point = &self->points[i];

		if (i == 0 || point[-1].series != point->series)
			rows[answer.count++] = (struct series_row){
				.pid = point->process.id.pid,
				.device = point->device,
				.device_uid = point->device_uid,
				.type = point->type,
				.step_s = point->step_s,
				.points = &points[i],
			};
		rows[answer.count - 1].point_count++;
		points[i] = (struct series_point){point->time_ns, point->used, point->buffers,
						  point->used_max};
	}
	document_put_about(json, &series_document, &about, &answer);
	return 0;
}

int recorder_documents_series(struct store_reader *reader, const struct query *query,
			      struct emit *json)
{
	uint64_t now = clock_ns(CLOCK_REALTIME);
	struct recorder_points points = {.filter = &query->filter};
	struct store_series_query wanted = {
		.from_ns = query->from_ns ? query->from_ns : now - RECORDER_SERIES_NS,
		.to_ns = query->to_ns,
		.step_s =
			(query->step_ms + 999) / 1000, /* of less than a second it knows nothing */
		.whole_devices = query->filter.pid == 0,
		.process.pid = query->filter.pid,
		.device = STORE_ANY,
		.type = query->filter.has_type ? query->filter.type : STORE_ANY,
		.limit = query->limit,
	};
	char text[RECORDER_CURSOR_SIZE];
	struct store_cursor next;
	int r = recorder_cursor_read(query->cursor, &wanted.after);

	if (r < 0)
		return r;
	/* One device is the database's business; several are looked for among all. */
	if (query->filter.device_count == 1) {
		const struct filter_device *device = &query->filter.devices[0];

		if (device->by_id)
			wanted.device_uid = device->value;
		else
			wanted.device = (uint32_t)device->value;
	}
	r = store_query_series(reader, &wanted, recorder_series_take, &points, &next);
	if (r == 0) {
		if (points.count > 0)
			qsort(points.points, points.count, sizeof(*points.points),
			      recorder_series_compare);
		r = recorder_series_write(json, &points, now, recorder_cursor_write(&next, text));
	}
	free(points.points);
	return r;
}
