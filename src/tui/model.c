/* SPDX-License-Identifier: Apache-2.0 */

/* The state behind the screen. */

#include "tui/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/chart.h"
#include "tui/pane.h"

#define MODEL_BY_NUMBER UINT64_C(1) /* keys of lines: a device by number, by id, a process */
#define MODEL_BY_ID UINT64_C(2)
#define MODEL_ROWS 10000u /* of buffers, unless a filter searches all of them */

void model_init(struct model *model)
{
	*model = (struct model){.seconds = 60};
	for (size_t i = 0; i < MODEL_VIEWS; i++) {
		model->lists[i].open_place = SIZE_MAX;
		model->lists[i].sort = pane_of((enum model_view)i)->sort;
		model->lists[i].falling = pane_of((enum model_view)i)->falling;
	}
}

void model_show_recording(struct model *model, const struct model_recording *recording,
			  uint64_t at_ns)
{
	uint64_t seconds = (recording->end_ns - recording->start_ns) / NS_PER_S + 1;

	model->recording = recording;
	model->at_ns = at_ns;
	model->seconds = (uint32_t)bits_min(seconds, (uint64_t)SERIES_SECONDS);
}

void model_deinit(struct model *model)
{
	poller_totals_free(model->totals);
	poller_details_free(model->details);
	series_set_deinit(&model->series);
	tree_deinit(&model->tree);
	for (size_t i = 0; i < MODEL_VIEWS; i++)
		list_deinit(&model->lists[i]);
}

const struct snapshot *model_snapshot(const struct model *model)
{
	return model->totals ? model->totals->snapshot : NULL;
}

struct series_key model_device_key(const struct snapshot_device *device)
{
	if (device->unique_id)
		return (struct series_key){MODEL_BY_ID, device->unique_id};
	return (struct series_key){MODEL_BY_NUMBER, device->device};
}

struct series_key model_process_key(const struct snapshot_process *process)
{
	return (struct series_key){(uint64_t)process->id.pid << 8, process->id.start_ticks};
}

bool model_shows_device(const struct model *model, const struct snapshot_device *device)
{
	if (!filter_wants_device(&model->filter, device->device, device->unique_id))
		return false;
	/* Cards that nobody uses too: people look for a free one. */
	return model->all || model->filter.device_count || !device->closed || device->stale ||
	       device->present || device->condition.state == SNAPSHOT_GONE ||
	       amount_of_device(device, AMOUNT_ALL).buffers;
}

bool model_shows_process(const struct model *model, const struct snapshot_process *process)
{
	const struct snapshot *snapshot = model_snapshot(model);

	/* Who is only in a region is shown, so that people know why it is full. */
	if (!process->alive && !process->stale && !model->all)
		return false;
	if (!model->has_device && !model->filter.device_count)
		return true;
	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[process->parts[i].row];
		struct series_key key = model_device_key(device);

		if (model_shows_device(model, device) &&
		    (!model->has_device ||
		     (key.high == model->device.high && key.low == model->device.low)))
			return true;
	}
	return false;
}

const struct snapshot_process *model_process(const struct model *model)
{
	const struct snapshot *snapshot = model_snapshot(model);

	return snapshot && model->has_process ? snapshot_find_process(snapshot, model->process)
					      : NULL;
}

void model_notice(struct model *model, enum grid_style style, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(model->notice, sizeof(model->notice), format, arguments);
	va_end(arguments);
	model->notice_style = style;
	model->notice_until_ns = model->now_ns + MODEL_NOTICE_NS;
}

/* Adds a point to every series. Without memory for it the chart has a gap. */
static void model_record(struct model *model, const struct poller_totals *totals)
{
	const struct snapshot *snapshot = totals->snapshot;

	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];
		struct series_key key = model_device_key(device);
		struct series_sample sample = {
			.time_ns = totals->time_ns,
			.values = {amount_of_device(device, TYPES_DRAM).used,
				   amount_of_device(device, TYPES_L1).used},
		};

		(void)series_add(&model->series, &key, &sample);
	}
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct series_key key = model_process_key(process);
		struct series_sample sample = {
			.time_ns = totals->time_ns,
			.values = {amount_of_process(process, AMOUNT_ANYWHERE, TYPES_DRAM).used,
				   amount_of_process(process, AMOUNT_ANYWHERE, TYPES_L1).used},
		};

		if (process->alive)
			(void)series_add(&model->series, &key, &sample);
	}
	if (totals->time_ns > SERIES_SECONDS * NS_PER_S)
		series_forget(&model->series, totals->time_ns - SERIES_SECONDS * NS_PER_S);
}

/* Notifies the user when the daemon appears or disappears. */
static void model_watch_daemon(struct model *model, const struct poller_totals *totals)
{
	enum poller_daemon before = model->totals ? model->totals->daemon : POLLER_DAEMON_NONE;

	if (totals->daemon == POLLER_DAEMON_FAILS && before != POLLER_DAEMON_FAILS)
		model_notice(model, GRID_NOTICE, "%.180s; going on without it", totals->reason);
	else if (totals->daemon == POLLER_DAEMON_NONE && before == POLLER_DAEMON_HELPS)
		model_notice(model, GRID_NOTICE, "ttmemd has gone; going on without it");
	else if (totals->daemon == POLLER_DAEMON_HELPS && model->totals &&
		 before != POLLER_DAEMON_HELPS)
		model_notice(model, GRID_NOTICE, "ttmemd is there");
}

/* If no process was selected, shows the buffers of the one that holds the most. */
static void model_choose_process(struct model *model)
{
	const struct snapshot *snapshot = model_snapshot(model);
	uint64_t most = 0;

	if (!snapshot || (model->has_process && (model->picked || model_process(model))))
		return;
	model->has_process = false;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		uint64_t bytes = amount_of_process(process, AMOUNT_ANYWHERE, AMOUNT_ALL).used;

		if (!model_shows_process(model, process) || (model->has_process && bytes <= most))
			continue;
		most = bytes;
		model->has_process = true;
		model->process = process->id;
	}
}

void model_totals_consume(struct model *model, struct poller_totals *totals)
{
	struct poller_totals *old = model->totals;

	if (!totals->snapshot) {
		model_notice(model, GRID_NOTICE, "cannot look at processes: %s",
			     strerror(-totals->error));
		poller_totals_free(totals);
		return;
	}
	/* Charts of a recording end at the moment that is shown, and come with it. */
	if (model->recording)
		series_set_deinit(&model->series);
	if (model->series.count == 0) {
		model->series = totals->before;
		totals->before = SERIES_SET_NULL;
	}
	model_record(model, totals);
	model_watch_daemon(model, totals);
	if (model->paused && old) {
		old->daemon = totals->daemon; /* notify only once */
		poller_totals_free(totals);
		return;
	}
	model->totals = totals;
	poller_totals_free(old);
	tree_deinit(&model->tree); /* it was of the old ones */
	kill_watch(model);
	model_choose_process(model);
	model_update(model);
}

void model_details_consume(struct model *model, struct poller_details *details)
{
	struct poller_wish wish = model_wish(model);
	bool is_first = !model->details || !poller_same_wish(&model->details->wish, &wish);

	if (details->error < 0) {
		model_notice(model, GRID_NOTICE, "cannot be read: %s", strerror(-details->error));
		poller_details_free(details);
		return;
	}
	if (model->paused && !is_first) {
		poller_details_free(details);
		return;
	}
	poller_details_free(model->details);
	model->details = details;
	model_update(model);
}

struct poller_wish model_wish(const struct model *model)
{
	const struct list *list = &model->lists[MODEL_BUFFERS];
	struct poller_wish wish = {.kind = POLLER_NOTHING, .at_ns = model->at_ns};

	if (model->view == MODEL_SITES)
		wish.kind = POLLER_SITES;
	if (model->view == MODEL_PAST)
		wish.kind = POLLER_PAST;
	if (model->view == MODEL_BUFFERS && model->has_process) {
		wish.kind = POLLER_BUFFERS;
		wish.pid = model->process.pid;
		/* The largest or the oldest are enough, unless a filter searches all. */
		wish.limit = *list->filter ? 0 : MODEL_ROWS;
		wish.order = pane_buffers_order(list);
	}
	return wish;
}

const struct poller_details *model_details(const struct model *model, enum poller_kind kind)
{
	/*
	 * Details for an older wish of the same kind are better than nothing, but not those of
	 * another process.
	 */
	if (!model->details || model->details->wish.kind != kind ||
	    (kind == POLLER_BUFFERS && model->details->wish.pid != model->process.pid))
		return NULL;
	return model->details;
}

void model_go(struct model *model, enum model_view view)
{
	if (view == model->view)
		return;
	if (model->depth == MODEL_BACK) {
		memmove(&model->back[0], &model->back[1],
			(MODEL_BACK - 1) * sizeof(model->back[0]));
		model->depth--;
	}
	model->back[model->depth++] = model->view;
	model->view = view;
	model->typing = false;
	model_update(model);
}

bool model_go_back(struct model *model)
{
	if (model->depth == 0)
		return false;
	model->view = model->back[--model->depth];
	model->typing = false;
	model_update(model);
	return true;
}

void model_update(struct model *model)
{
	const struct pane *pane = pane_of(model->view);

	if (list_update(&model->lists[model->view], pane->rows, model, pane->count(model)) < 0)
		model_notice(model, GRID_NOTICE, "no memory for the list");
}

static void model_draw_chart(const struct model *model, struct grid *grid,
			     const struct grid_area *area, const struct model_chart *chart,
			     enum series_line line)
{
	uint64_t points[CHART_POINTS_MAX];
	struct grid_area inner = chart_inner(area);
	/* A paused chart ends when it was paused. */
	uint64_t until = model->totals ? model->totals->time_ns : 0;
	uint64_t span = model->seconds * NS_PER_S;
	char title[128];
	struct chart_frame frame = {
		.title = title,
		.points = points,
		.now = chart->now[line],
		.capacity = chart->capacity[line],
		.seconds = model->seconds,
	};

	snprintf(title, sizeof(title), "%s %s", chart->title, line == SERIES_DRAM ? "DRAM" : "L1");
	series_plot(series_find(&model->series, &chart->key), line, until > span ? until - span : 0,
		    until, points, chart_points(grid, inner.columns));
	chart_frame_draw(grid, area, &frame);
}

void model_draw_charts(const struct model *model, struct grid *grid, const struct grid_area *area,
		       const struct model_chart *chart)
{
	struct grid_area first = *area, second = *area;

	/* One above the other if both fit: wide charts are easier to read than tall ones. */
	if (area->rows < (area->columns >= 100 ? 24 : 14)) {
		first.columns = area->columns / 2;
		second.columns = area->columns - first.columns;
		second.column += first.columns;
	} else {
		first.rows = area->rows / 2;
		second.rows = area->rows - first.rows;
		second.row += first.rows;
	}
	model_draw_chart(model, grid, &first, chart, SERIES_DRAM);
	model_draw_chart(model, grid, &second, chart, SERIES_L1);
}
