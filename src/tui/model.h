/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All state that the screen is drawn from: the last readings, the series over time, and the user's
 * choices. Views change it in response to keys and draw it. It knows no terminal, thread or clock,
 * so that tests can do everything.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/process-id.h"
#include "model/filter.h"
#include "tui/kill.h"
#include "tui/list.h"
#include "tui/poller.h"
#include "tui/series.h"
#include "tui/tree.h"

struct snapshot_device;
struct snapshot_process;

enum model_view {
	MODEL_DEVICES = 0,
	MODEL_PROCESSES,
	MODEL_BUFFERS,
	MODEL_SITES,
	MODEL_PAST,
	MODEL_TELEMETRY,
	MODEL_VIEWS,
};

#define MODEL_NOTICE_SIZE 256
#define MODEL_NOTICE_NS UINT64_C(8000000000) /* how long one stays */
#define MODEL_BACK 16u                       /* how many steps Esc can go back */

/* Where keys can go in a recording; CLOCK_REALTIME. */
struct model_recording {
	uint64_t start_ns, end_ns;
	uint64_t peak_ns;
	const uint64_t *incidents; /* ascending */
	size_t incident_count;
};

struct model {
	/* Settings. */
	const struct model_recording *recording; /* NULL = none, but this machine */
	struct filter filter;                    /* devices */
	bool all;                                /* include closed devices and ended processes */

	/* The readings; all NULL at first. */
	struct poller_totals *totals;
	struct poller_details *details;
	struct series_set series;
	uint64_t now_ns; /* CLOCK_MONOTONIC, as of the last event */

	/* The user's choices. */
	uint64_t at_ns; /* the moment of the recording; 0 = now */
	enum model_view view;
	enum model_view back[MODEL_BACK];
	unsigned int depth; /* of @back */
	uint32_t seconds;   /* of charts */
	bool paused;
	bool help;
	bool notes;
	bool typing;                 /* into the filter of the view's list */
	bool wants_save, wants_quit; /* requests to tui.c */
	bool wants_settings;         /* likewise: to be saved */
	struct kill_state kill;
	struct tree tree;
	struct list lists[MODEL_VIEWS];
	bool has_process; /* whose buffers are shown: */
	bool picked;      /* the user has selected it */
	struct process_id process;
	bool has_device; /* whose processes are shown: */
	struct series_key device;

	char notice[MODEL_NOTICE_SIZE]; /* "" = none */
	enum grid_style notice_style;
	uint64_t notice_until_ns;
};

void model_init(struct model *model);
void model_deinit(struct model *model);

/* A moment of a recording instead of this machine, with charts over all of it if it is short. */
void model_show_recording(struct model *model, const struct model_recording *recording,
			  uint64_t at_ns);

/* Takes new readings. A paused model keeps what it shows, but continues its series. */
void model_totals_consume(struct model *model, struct poller_totals *totals);
void model_details_consume(struct model *model, struct poller_details *details);

/* NULL before the first. */
const struct snapshot *model_snapshot(const struct model *model);

/* What the reader should read in detail for the current view. */
struct poller_wish model_wish(const struct model *model);

/* The details, if they match model_wish(); NULL = not read yet. */
const struct poller_details *model_details(const struct model *model, enum poller_kind kind);

void model_notice(struct model *model, enum grid_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Goes to a view; Esc returns from it. */
void model_go(struct model *model, enum model_view view);
bool model_go_back(struct model *model);

/* Filters and sorts the view's list again. */
void model_update(struct model *model);

struct series_key model_device_key(const struct snapshot_device *device);
struct series_key model_process_key(const struct snapshot_process *process);

/* Whether it is shown at all. */
bool model_shows_device(const struct model *model, const struct snapshot_device *device);
bool model_shows_process(const struct model *model, const struct snapshot_process *process);

/* The process whose buffers are shown; NULL if it is gone. */
const struct snapshot_process *model_process(const struct model *model);

/* The two series of @key as charts, side by side or one above the other. */
struct model_chart {
	const char *title; /* whose they are */
	struct series_key key;
	uint64_t now[SERIES_LINES];
	uint64_t capacity[SERIES_LINES];
};

void model_draw_charts(const struct model *model, struct grid *grid, const struct grid_area *area,
		       const struct model_chart *chart);
