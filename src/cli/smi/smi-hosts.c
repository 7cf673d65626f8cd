/* SPDX-License-Identifier: Apache-2.0 */

/* One table of several machines, from their smi documents. */

#include "cli/smi/smi-hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
#include "cli/smi/smi-prometheus.h"
#include "model/merge.h"
#include "model/types.h"
#include "source/fleet/host-url.h"
#include "source/fleet/http-fetch.h"

#define HOSTS_SCHEMA "ttmem.smi/1"
#define HOSTS_VERSION_MAX 9u /* digits */

const struct http_fetch_limits smi_hosts_limits = {
	.text_max = SMI_HOSTS_TEXT_MAX,
	.texts_max = SMI_HOSTS_TEXTS_MAX,
};

int smi_hosts_add(void *hosts, const char *text)
{
	struct smi_hosts *self = hosts;

	if (!host_url_is_name(text))
		return -EINVAL;
	for (size_t i = 0; i < self->count; i++) {
		if (strcmp(self->names[i], text) == 0)
			return 0; /* count its memory once */
	}
	if (self->count == SMI_HOSTS_MAX)
		return -EINVAL;
	self->names[self->count++] = text;
	return 0;
}

int smi_hosts_set_prometheus(void *hosts, const char *text)
{
	struct smi_hosts *self = hosts;
	const char *scheme = strstr(text, "://");
	size_t length = scheme ? (size_t)(scheme - text) : 0;

	if (!*text || strpbrk(text, " ?#"))
		return -EINVAL;
	if (scheme && !(length == 4 && strncmp(text, "http", 4) == 0) &&
	    !(length == 5 && strncmp(text, "https", 5) == 0))
		return -EINVAL;
	self->prometheus = text;
	return 0;
}

/* Invalid and negative numbers are 0. */
static uint64_t hosts_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) && json_integer_value(value) > 0
		       ? (uint64_t)json_integer_value(value)
		       : 0;
}

static void hosts_print_device(struct smi_fleet *fleet, const char *host, const json_t *device)
{
	const json_t *memory = json_object_get(device, "memory");
	const char *card = json_string_value(json_object_get(device, "card"));
	const char *arch = json_string_value(json_object_get(device, "arch"));
	struct smi_fleet_sums sums = {0};
	char number[24], name[64] = "";

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const json_t *one = json_object_get(memory, types_name(type));

		smi_fleet_add(&sums, type, hosts_number(one, "used"),
			      hosts_number(one, "capacity"));
		sums.buffers = merge_add(sums.buffers, hosts_number(one, "buffers"));
	}
	if (card || arch)
		snprintf(name, sizeof(name), "%s%s%s", card ? card : "", card && arch ? " " : "",
			 arch ? arch : "");
	snprintf(number, sizeof(number), "%" PRIu64, hosts_number(device, "device"));
	smi_fleet_row(fleet, host, number, name, &sums);
}

/* Whether it is our schema in another version. Any other text in a schema is never shown. */
static bool hosts_is_other_version(const char *schema)
{
	const size_t kind = strlen("ttmem.smi/");
	size_t digits;

	if (!schema || strncmp(schema, HOSTS_SCHEMA, kind) != 0)
		return false;
	digits = strspn(schema + kind, "0123456789");
	return digits > 0 && digits <= HOSTS_VERSION_MAX && !schema[kind + digits];
}

/* The document of a host; NULL if it is missing or invalid, and then the problem is set. */
static json_t *hosts_parse(struct http_fetch *fetch)
{
	json_t *document = fetch->text ? json_loadb(fetch->text, fetch->length, 0, NULL) : NULL;
	const char *schema = json_string_value(json_object_get(document, "schema"));

	if (schema && strcmp(schema, HOSTS_SCHEMA) == 0)
		return document;
	if (!*fetch->problem && hosts_is_other_version(schema))
		snprintf(fetch->problem, sizeof(fetch->problem),
			 "speaks %s, which this ttmem does not know", schema);
	else if (!*fetch->problem)
		strcpy(fetch->problem, "its answer is no ttmem.smi");
	json_decref(document);
	return NULL;
}

static void hosts_print(const struct smi_hosts *hosts, struct http_fetch *fetches)
{
	uint64_t processes = 0, answers = 0;
	struct smi_fleet fleet;

	smi_fleet_begin(&fleet, "CARD");
	for (size_t i = 0; i < hosts->count; i++) {
		json_t *document = hosts_parse(&fetches[i]);
		const json_t *devices = json_object_get(document, "devices");

		for (size_t k = 0; k < json_array_size(devices); k++)
			hosts_print_device(&fleet, hosts->names[i], json_array_get(devices, k));
		if (!document || json_array_size(devices) == 0)
			smi_fleet_lack(&fleet, hosts->names[i],
				       document ? "no device in use" : fetches[i].problem);
		processes += json_array_size(json_object_get(document, "processes"));
		answers += document != NULL;
		json_decref(document);
	}
	if (smi_fleet_end(&fleet, answers > 0))
		printf(", %" PRIu64 " process%s\n", processes, processes == 1 ? "" : "es");
}

static void hosts_json(const struct smi_hosts *hosts, struct http_fetch *fetches)
{
	struct emit json = EMIT_INIT(stdout);

	document_open(&json, "ttmem.hosts/1", clock_ns(CLOCK_REALTIME));
	emit_open_array(&json, "hosts");
	for (size_t i = 0; i < hosts->count; i++) {
		json_t *document = hosts_parse(&fetches[i]);
		CLEANUP_FREE char *text =
			document ? json_dumps(document, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

		emit_open_object(&json, NULL);
		emit_string(&json, "host", hosts->names[i]);
		if (text) {
			emit_raw(&json, "smi", text);
			emit_null(&json, "problem");
		} else {
			emit_null(&json, "smi");
			emit_string(&json, "problem", fetches[i].problem);
		}
		emit_close_object(&json);
		json_decref(document);
	}
	smi_fleet_end_json(&json);
}

static int hosts_ask(const struct smi_hosts *hosts, bool json)
{
	CLEANUP_FREE struct http_fetch *fetches = must_alloc(hosts->count, sizeof(*fetches));
	bool all = true;
	int r;

	for (size_t i = 0; i < hosts->count; i++)
		fetches[i].url = must_have(host_url(hosts->names[i], "/api/v1/smi"));
	r = http_fetch_all(fetches, hosts->count, &smi_hosts_limits);
	if (r == 0 && json)
		hosts_json(hosts, fetches);
	else if (r == 0)
		hosts_print(hosts, fetches);
	for (size_t i = 0; i < hosts->count; i++) {
		all &= !*fetches[i].problem;
		http_fetch_deinit(&fetches[i]);
	}
	if (r < 0)
		return output_fail("smi", "cannot ask", r);
	return all ? output_finish() : (output_finish(), COMMAND_FAILED);
}

int smi_hosts_run(const struct smi_hosts *hosts, bool json)
{
	return hosts->prometheus ? smi_prometheus_run(hosts->prometheus, json)
				 : hosts_ask(hosts, json);
}
