/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a Prometheus knows about the machines that it scrapes: one sample per device, type and
 * figure, and one per machine that does not answer, which would otherwise be missing.
 */

#include "cli/smi/smi-prometheus.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/output.h"
#include "cli/smi/smi-fleet.h"
#include "cli/smi/smi-hosts.h"
#include "model/merge.h"
#include "model/types.h"
#include "source/fleet/http-fetch.h"

/* {__name__=~"ttmem_device_(bytes|buffers|capacity_bytes)"} or up{job=~"ttmem.*"} == 0 */
#define PROMETHEUS_QUERY                                             \
	"%.*s/api/v1/query?query=%%7B__name__%%3D~%%22ttmem_device_" \
	"%%28bytes%%7Cbuffers%%7Ccapacity_bytes%%29%%22%%7D"         \
	"%%20or%%20up%%7Bjob%%3D~%%22ttmem.*%%22%%7D%%20%%3D%%3D%%200"

#define PROMETHEUS_NAME 256 /* longest host name shown */
#define PROMETHEUS_AWAY "Prometheus cannot scrape it"

enum prometheus_figure {
	PROMETHEUS_USED,
	PROMETHEUS_BUFFERS,
	PROMETHEUS_CAPACITY,
	PROMETHEUS_FIGURES,
};

/* One device, or a machine without one: the labels that identify it, and all its figures. */
struct prometheus_row {
	const char *cluster, *host, *device, *uid; /* owned by the samples */
	uint64_t figures[PROMETHEUS_FIGURES][BOOK_TYPES];
};

static const char *prometheus_label(const json_t *sample, const char *key)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(sample, "metric"), key));

	return text ? text : "";
}

/* Invalid and negative numbers are 0. */
static uint64_t prometheus_value(const json_t *sample)
{
	const char *text = json_string_value(json_array_get(json_object_get(sample, "value"), 1));
	double value = text ? strtod(text, NULL) : 0;

	if (!(value > 0))
		return 0;
	return value < 0x1p63 ? (uint64_t)value : INT64_MAX;
}

/* By cluster, host, device and unique id; 0 = the same. */
static int prometheus_differ(const json_t *a, const json_t *b)
{
	static const char *const keys[] = {"cluster", "instance", "device", "uid"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keys); i++)
		r = strverscmp(prometheus_label(a, keys[i]), prometheus_label(b, keys[i]));
	return r;
}

static int prometheus_compare(const void *left, const void *right)
{
	return prometheus_differ(*(json_t *const *)left, *(json_t *const *)right);
}

static void prometheus_add(struct prometheus_row *row, const json_t *sample)
{
	static const char *const names[PROMETHEUS_FIGURES] = {
		"ttmem_device_bytes",
		"ttmem_device_buffers",
		"ttmem_device_capacity_bytes",
	};
	const char *name = prometheus_label(sample, "__name__");
	uint32_t type;

	if (types_parse(prometheus_label(sample, "type"), &type) < 0)
		return;
	for (size_t i = 0; i < PROMETHEUS_FIGURES; i++) {
		uint64_t *figure = &row->figures[i][type];

		if (strcmp(name, names[i]) == 0)
			*figure = merge_add(*figure, prometheus_value(sample));
	}
}

/* Turns sorted samples into rows and returns their number. @ret_rows has room for all samples. */
static size_t prometheus_gather(const json_t **samples, size_t count,
				struct prometheus_row *ret_rows)
{
	size_t rows = 0;

	for (size_t i = 0; i < count; i++) {
		if (i == 0 || prometheus_differ(samples[i - 1], samples[i])) {
			ret_rows[rows++] = (struct prometheus_row){
				.cluster = prometheus_label(samples[i], "cluster"),
				.host = prometheus_label(samples[i], "instance"),
				.device = prometheus_label(samples[i], "device"),
				.uid = prometheus_label(samples[i], "uid"),
			};
		}
		prometheus_add(&ret_rows[rows - 1], samples[i]);
	}
	return rows;
}

/* With several clusters, two of them may have a host of the same name. */
static const char *prometheus_host(const struct prometheus_row *row, bool with_cluster,
				   char ret_name[PROMETHEUS_NAME])
{
	snprintf(ret_name, PROMETHEUS_NAME, "%s%s%s", with_cluster ? row->cluster : "",
		 with_cluster && *row->cluster ? "/" : "", row->host);
	return ret_name;
}

static void prometheus_print(const struct prometheus_row *rows, size_t count)
{
	bool clusters = count > 0 && strcmp(rows[0].cluster, rows[count - 1].cluster) != 0;
	char name[PROMETHEUS_NAME];
	struct smi_fleet fleet;
	size_t away = 0;

	smi_fleet_begin(&fleet, "UID");
	for (size_t i = 0; i < count; i++) {
		const struct prometheus_row *row = &rows[i];
		const char *host = prometheus_host(row, clusters, name);
		struct smi_fleet_sums sums = {0};

		if (!*row->device) {
			smi_fleet_lack(&fleet, host, PROMETHEUS_AWAY);
			away++;
			continue;
		}
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			smi_fleet_add(&sums, type, row->figures[PROMETHEUS_USED][type],
				      row->figures[PROMETHEUS_CAPACITY][type]);
			sums.buffers =
				merge_add(sums.buffers, row->figures[PROMETHEUS_BUFFERS][type]);
		}
		smi_fleet_row(&fleet, host, row->device, row->uid, &sums);
	}
	if (smi_fleet_end(&fleet, count == 0 || away < count))
		printf(", %zu device%s%s\n", count - away, count - away == 1 ? "" : "s",
		       count ? "" : ": it scrapes no ttmemd, see docs/fleet.md");
}

static void prometheus_json_row(struct emit *json, const struct prometheus_row *row)
{
	emit_open_object(json, NULL);
	emit_string(json, "cluster", *row->cluster ? row->cluster : NULL);
	emit_string(json, "host", row->host);
	emit_string(json, "problem", *row->device ? NULL : PROMETHEUS_AWAY);
	emit_string(json, "device", *row->device ? row->device : NULL);
	emit_string(json, "uid", *row->uid ? row->uid : NULL);
	emit_open_object(json, "memory");
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		uint64_t capacity = row->figures[PROMETHEUS_CAPACITY][type];

		emit_open_object(json, types_name(type));
		emit_u64(json, "used", row->figures[PROMETHEUS_USED][type]);
		emit_u64(json, "buffers", row->figures[PROMETHEUS_BUFFERS][type]);
		if (capacity)
			emit_u64(json, "capacity", capacity);
		else
			emit_null(json, "capacity");
		emit_close_object(json);
	}
	emit_close_object(json);
	emit_close_object(json);
}

static void prometheus_json(const struct prometheus_row *rows, size_t count)
{
	struct emit json = EMIT_INIT(stdout);

	document_open(&json, "ttmem.prometheus/1", clock_ns(CLOCK_REALTIME));
	emit_open_array(&json, "devices");
	for (size_t i = 0; i < count; i++)
		prometheus_json_row(&json, &rows[i]);
	smi_fleet_end_json(&json);
}

static int prometheus_show(const json_t *samples, bool as_json)
{
	size_t count = json_array_size(samples);
	CLEANUP_FREE const json_t **sorted = must_alloc(count + 1, sizeof(const json_t *));
	CLEANUP_FREE struct prometheus_row *rows = must_alloc(count + 1, sizeof(*rows));
	bool all = true;
	for (size_t i = 0; i < count; i++)
		sorted[i] = json_array_get(samples, i);
	qsort(sorted, count, sizeof(const json_t *), prometheus_compare);
	count = prometheus_gather(sorted, count, rows);
	if (as_json)
		prometheus_json(rows, count);
	else
		prometheus_print(rows, count);
	for (size_t i = 0; i < count; i++)
		all &= *rows[i].device != '\0';
	return all ? output_finish() : (output_finish(), COMMAND_FAILED);
}

int smi_prometheus_run(const char *url, bool as_json)
{
	CLEANUP(http_fetch_deinit)
	struct http_fetch fetch = {.token = getenv("TTMEM_PROMETHEUS_TOKEN")};
	size_t end = strlen(url);
	json_t *document = NULL;
	const json_t *samples;
	int code = COMMAND_FAILED;

	while (end > 0 && url[end - 1] == '/')
		end--;
	if (asprintf(&fetch.url, PROMETHEUS_QUERY, (int)end, url) < 0)
		must_end();
	if (http_fetch_all(&fetch, 1, &smi_hosts_limits) == 0 && fetch.text)
		document = json_loadb(fetch.text, fetch.length, 0, NULL);
	samples = json_object_get(json_object_get(document, "data"), "result");
	if (json_is_array(samples))
		code = prometheus_show(samples, as_json);
	else
		fprintf(stderr, "ttmem smi: %s: %s\n", url,
			*fetch.problem ? fetch.problem : "its answer is not a Prometheus'");
	json_decref(document);
	return code;
}
