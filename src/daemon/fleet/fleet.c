/* SPDX-License-Identifier: Apache-2.0 */

/* Whom to ask, asking, and the document. */

#include "daemon/fleet/fleet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers/document.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "daemon/fleet/fleet-row.h"
#include "source/fleet/host-url.h"
#include "source/fleet/http-fetch.h"
#include "source/fleet/prometheus.h"

/* up{job=~"ttmem.*"} */
#define FLEET_QUERY "up%7Bjob%3D~%22ttmem.*%22%7D"

struct fleet {
	struct fleet_config config;
	char *names[HOST_URL_LIST_MAX]; /* owned; the named ones first */
	size_t named, count;            /* of the settings; and with those that were found */
	size_t left_out;                /* found beyond that */
	char prometheus_problem[160];   /* "" = none */
	struct fleet_row rows[HOST_URL_LIST_MAX]; /* in the order of the document */
	uint64_t asked_ns;                        /* CLOCK_MONOTONIC; 0 = never */
	uint64_t time_ns;                         /* CLOCK_REALTIME of the same */
};

/* Each name once. 0, -ENOSPC or -ENOMEM. */
static int fleet_add(struct fleet *fleet, const char *name)
{
	char *copy;

	for (size_t i = 0; i < fleet->count; i++) {
		if (strcmp(fleet->names[i], name) == 0)
			return 0;
	}
	if (fleet->count == HOST_URL_LIST_MAX)
		return -ENOSPC;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	fleet->names[fleet->count++] = copy;
	return 0;
}

static int fleet_add_list(struct fleet *fleet, const char *list)
{
	CLEANUP_FREE char *copy = strdup(list);
	char *rest = copy, *name;
	int r = copy ? 0 : -ENOMEM;

	while (r == 0 && (name = host_url_next(&rest)))
		r = host_url_is_name(name) ? fleet_add(fleet, name) : -EINVAL;
	return r;
}

int fleet_new(struct fleet **ret_fleet, const struct fleet_config *config)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));
	int r = fleet ? 0 : -ENOMEM;

	if (r == 0) {
		fleet->config = *config;
		r = config->hosts ? fleet_add_list(fleet, config->hosts) : 0;
		fleet->named = fleet->count;
	}
	if (r < 0) {
		fleet_free(fleet);
		return r;
	}
	*ret_fleet = fleet;
	return 0;
}

/* Forgets those that were found. */
static void fleet_forget(struct fleet *fleet, size_t keep)
{
	while (fleet->count > keep)
		free(fleet->names[--fleet->count]);
	fleet->left_out = 0;
}

struct fleet *fleet_free(struct fleet *fleet)
{
	if (fleet)
		fleet_forget(fleet, 0);
	free(fleet);
	return NULL;
}

/* Where to ask. While Prometheus does not answer, those that it last named stay. */
static void fleet_find(struct fleet *fleet, const bool *stop)
{
	const struct http_fetch_limits limits = {
		.text_max = FLEET_PROMETHEUS_MAX,
		.texts_max = FLEET_PROMETHEUS_MAX,
		.stop = stop,
	};
	CLEANUP(prometheus_deinit) struct prometheus answer;

	if (!fleet->config.prometheus ||
	    prometheus_ask(&answer, fleet->config.prometheus, FLEET_QUERY, fleet->config.token,
			   &limits) < 0)
		return;
	memcpy(fleet->prometheus_problem, answer.problem, sizeof(answer.problem));
	if (*answer.problem)
		return;
	fleet_forget(fleet, fleet->named);
	for (size_t i = 0; i < answer.count; i++) {
		const char *name = answer.samples[i].instance;

		if (host_url_is_name(name) && fleet_add(fleet, name) < 0)
			fleet->left_out++;
	}
}

static int fleet_ask(struct fleet *fleet, const bool *stop)
{
	const struct http_fetch_limits limits = {
		.text_max = FLEET_TEXT_MAX,
		.texts_max = FLEET_TEXT_MAX * HOST_URL_LIST_MAX,
		.stop = stop,
	};
	CLEANUP_FREE struct http_fetch *fetches = calloc(fleet->count + 1, sizeof(*fetches));
	int r = fetches ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < fleet->count; i++) {
		fetches[i].url = host_url(fleet->names[i], "/api/v1/host");
		if (!fetches[i].url)
			r = -ENOMEM;
	}
	if (r == 0 && fleet->count > 0)
		r = http_fetch_all(fetches, fleet->count, &limits);
	for (size_t i = 0; fetches && i < fleet->count; i++) {
		struct fleet_row *row = &fleet->rows[i];

		*row = (struct fleet_row){.host = fleet->names[i]};
		if (fetches[i].text)
			fleet_row_parse(row, fetches[i].text, fetches[i].length);
		else
			snprintf(row->problem, sizeof(row->problem), "%s", fetches[i].problem);
		http_fetch_deinit(&fetches[i]);
	}
	return r;
}

static int fleet_refresh(struct fleet *fleet, const bool *stop)
{
	int r;

	if (fleet->asked_ns &&
	    clock_ns(CLOCK_MONOTONIC) - fleet->asked_ns < FLEET_FRESH_S * NS_PER_S)
		return 0;
	fleet_find(fleet, stop);
	r = fleet_ask(fleet, stop);
	if (r < 0)
		return r;
	qsort(fleet->rows, fleet->count, sizeof(*fleet->rows), fleet_row_compare);
	/* From the end on, so that slow hosts are not asked all the time. */
	fleet->asked_ns = clock_ns(CLOCK_MONOTONIC);
	fleet->time_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

#define ROW struct fleet

static const struct field fleet_members[] = {
	FIELD_ARRAY("hosts", rows, count, fleet_row_fields),
	FIELD_END,
};

const struct document fleet_answer = {
	.schema = "ttmem.fleet/1",
	.title = "/api/v1/fleet: the machines that this daemon knows, those with trouble first",
	.members = fleet_members,
	.has = DOCUMENT_LIST,
};

int fleet_document(struct fleet *fleet, const bool *stop, struct emit *json)
{
	char problem[512], more[128];
	const char *notes[2];
	struct document_about about = {.notes = notes};
	int r = fleet_refresh(fleet, stop);

	if (r < 0)
		return r;
	about.time_ns = fleet->time_ns;
	if (*fleet->prometheus_problem) {
		/* The address may hold a password: it is not told. */
		snprintf(problem, sizeof(problem), "Prometheus cannot be asked for hosts: %s",
			 fleet->prometheus_problem);
		notes[about.note_count++] = problem;
	}
	if (fleet->left_out > 0) {
		snprintf(more, sizeof(more), "%zu more hosts are not asked: %u is the most",
			 fleet->left_out, HOST_URL_LIST_MAX);
		notes[about.note_count++] = more;
	}
	document_put_about(json, &fleet_answer, &about, fleet);
	return 0;
}
