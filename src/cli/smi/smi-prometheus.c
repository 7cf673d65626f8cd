/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a Prometheus knows about the machines that it scrapes: one sample per device, type and
 * figure, and one per machine that does not answer, which would otherwise be missing.
 */

#include "cli/smi/smi-prometheus.h"

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
#include "cli/common/command.h"
#include "cli/common/must.h"
#include "cli/common/output.h"
#include "cli/smi/smi-fleet.h"
#include "cli/smi/smi-hosts.h"
#include "model/merge.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/fleet/prometheus.h"

/* {__name__=~"ttmem_device_(bytes|buffers|capacity_bytes)"} or up{job=~"ttmem.*"} == 0 */
#define PROMETHEUS_QUERY                               \
	"%7B__name__%3D~%22ttmem_device_"              \
	"%28bytes%7Cbuffers%7Ccapacity_bytes%29%22%7D" \
	"%20or%20up%7Bjob%3D~%22ttmem.*%22%7D%20%3D%3D%200"

#define PROMETHEUS_NAME 256 /* longest host name shown */

/* One device, or a machine without one: the labels that identify it, and all its figures. */
struct prometheus_row {
	const char *cluster, *host, *problem, *number, *uid; /* NULL = none */
	struct snapshot_device device;                       /* its memory only */
};

#define ROW struct snapshot_memory

static const struct field prometheus_memory[] = {
	FIELD("used", BYTES, used),
	FIELD("buffers", NUMBER, buffers),
	FIELD_OR_NULL("capacity", BYTES, capacity, .says = "null if not known"),
	FIELD_END,
};

#undef ROW
#define ROW struct prometheus_row

static const struct field prometheus_fields[] = {
	FIELD_OR_NULL("cluster", TEXT, cluster, .says = "the label of that name"),
	FIELD("host", TEXT, host, .says = "the label instance"),
	FIELD_OR_NULL("problem", TEXT, problem, .says = "why there is no device"),
	FIELD_OR_NULL("device", TEXT, number),
	FIELD_OR_NULL("uid", TEXT, uid),
	FIELD_BY_TYPE("memory", device.memory, prometheus_memory),
	FIELD_END,
};

struct prometheus_rows {
	struct prometheus_row *rows;
	size_t count, capacity;
	bool has_clusters; /* several */
};

#undef ROW
#define ROW struct prometheus_rows

static const struct field prometheus_members[] = {
	FIELD_ARRAY_AT(
		"devices", ROWS, rows, count, .fields = prometheus_fields,
		.says = "one for each device; and one without a device for each machine that "
			"cannot be scraped"),
	FIELD_END,
};

const struct document prometheus_document = {
	.schema = "ttmem.prometheus/1",
	.title = "ttmem smi --prometheus URL --json: devices of all machines that it scrapes",
	.members = prometheus_members,
	.has = DOCUMENT_LIST,
};

/* By cluster, host, device and unique id; 0 = the same. */
static int prometheus_compare(const void *left, const void *right)
{
	const struct prometheus_sample *a = left, *b = right;
	int r = strverscmp(a->cluster, b->cluster);

	if (r == 0)
		r = strverscmp(a->instance, b->instance);
	if (r == 0)
		r = strverscmp(a->device, b->device);
	return r ? r : strverscmp(a->uid, b->uid);
}

static void prometheus_add(struct prometheus_row *row, const struct prometheus_sample *sample)
{
	struct snapshot_memory *memory;
	uint32_t type;

	if (types_parse(sample->type, &type) < 0)
		return;
	memory = &row->device.memory[type];
	if (strcmp(sample->name, "ttmem_device_bytes") == 0)
		memory->used = merge_add(memory->used, sample->value);
	else if (strcmp(sample->name, "ttmem_device_buffers") == 0)
		memory->buffers = merge_add(memory->buffers, sample->value);
	else if (strcmp(sample->name, "ttmem_device_capacity_bytes") == 0)
		memory->capacity = merge_add(memory->capacity, sample->value);
}

static const char *prometheus_known(const char *label)
{
	return *label ? label : NULL;
}

/* Turns sorted samples into rows. */
static void prometheus_gather(const struct prometheus *answer, struct prometheus_rows *rows)
{
	const struct prometheus_sample *samples = answer->samples;

	for (size_t i = 0; i < answer->count; i++) {
		if (i == 0 || prometheus_compare(&samples[i - 1], &samples[i]) != 0) {
			must_grow(rows->rows, &rows->capacity, rows->count + 1);
			rows->rows[rows->count++] = (struct prometheus_row){
				.cluster = prometheus_known(samples[i].cluster),
				.host = samples[i].instance,
				.problem =
					*samples[i].device ? NULL : "Prometheus cannot scrape it",
				.number = prometheus_known(samples[i].device),
				.uid = prometheus_known(samples[i].uid),
			};
		}
		prometheus_add(&rows->rows[rows->count - 1], &samples[i]);
		rows->has_clusters |= strcmp(samples[0].cluster, samples[i].cluster) != 0;
	}
}

/* With several clusters, two of them may have a host of the same name. */
static const char *prometheus_host(const struct prometheus_row *row, bool with_cluster,
				   char ret_name[PROMETHEUS_NAME])
{
	bool is_named = with_cluster && row->cluster;

	snprintf(ret_name, PROMETHEUS_NAME, "%s%s%s", is_named ? row->cluster : "",
		 is_named ? "/" : "", row->host);
	return ret_name;
}

static void prometheus_print(const struct prometheus_rows *rows)
{
	char name[PROMETHEUS_NAME];
	struct smi_fleet fleet;
	size_t devices = 0;

	smi_fleet_begin(&fleet, "UID");
	for (size_t i = 0; i < rows->count; i++) {
		const struct prometheus_row *row = &rows->rows[i];
		const char *host = prometheus_host(row, rows->has_clusters, name);

		if (row->problem) {
			smi_fleet_lack(&fleet, host, row->problem);
			continue;
		}
		devices++;
		smi_fleet_row(&fleet, host, row->number, row->uid, &row->device);
	}
	if (smi_fleet_end(&fleet, rows->count == 0 || devices > 0))
		printf(", %zu device%s%s\n", devices, devices == 1 ? "" : "s",
		       rows->count ? "" : ": it scrapes no ttmemd, see docs/fleet.md");
}

static int prometheus_show(const struct prometheus *answer, bool as_json)
{
	struct prometheus_rows rows = {.rows = NULL};
	struct emit json = EMIT_INIT(stdout);
	bool all = true;

	qsort(answer->samples, answer->count, sizeof(*answer->samples), prometheus_compare);
	prometheus_gather(answer, &rows);
	if (as_json)
		document_put_about(&json, &prometheus_document,
				   &(struct document_about){.time_ns = clock_ns(CLOCK_REALTIME)},
				   &rows);
	else
		prometheus_print(&rows);
	for (size_t i = 0; i < rows.count; i++)
		all &= !rows.rows[i].problem;
	free(rows.rows);
	return all ? output_finish() : (output_finish(), COMMAND_FAILED);
}

int smi_prometheus_run(const char *url, bool as_json)
{
	CLEANUP(prometheus_deinit) struct prometheus answer;

	if (prometheus_ask(&answer, url, PROMETHEUS_QUERY, getenv("TTMEM_PROMETHEUS_TOKEN"),
			   &smi_hosts_limits) < 0)
		must_end();
	if (!*answer.problem)
		return prometheus_show(&answer, as_json);
	fprintf(stderr, "ttmem smi: %s: %s\n", url, answer.problem);
	return COMMAND_FAILED;
}
