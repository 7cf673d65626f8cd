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

#include "answers/document-processes.h"
#include "answers/document-take.h"
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
#include "model/snapshot.h"
#include "model/types.h"
#include "source/fleet/host-url.h"
#include "source/fleet/http-fetch.h"

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

static void hosts_print_device(struct smi_fleet *fleet, const char *host,
			       const struct snapshot_device *device)
{
	char number[24], name[64] = "";

	if (device->card || device->arch)
		snprintf(name, sizeof(name), "%s%s%s", device->card ? device->card : "",
			 device->card && device->arch ? " " : "", device->arch ? device->arch : "");
	snprintf(number, sizeof(number), "%" PRIu32, device->device);
	smi_fleet_row(fleet, host, number, name, device);
}

/* Whether it is our schema in another version. Any other text in a schema is never shown. */
static bool hosts_is_other_version(const char *schema)
{
	const size_t kind = strlen("ttmem.smi/");
	size_t digits;

	if (!schema || strncmp(schema, smi_document.schema, kind) != 0)
		return false;
	digits = strspn(schema + kind, "0123456789");
	return digits > 0 && digits <= HOSTS_VERSION_MAX && !schema[kind + digits];
}

/* The document of a host; NULL if it is missing or invalid, and then the problem is set. */
static json_t *hosts_parse(struct http_fetch *fetch)
{
	json_t *document = fetch->text ? document_load(fetch->text, fetch->length) : NULL;
	const char *schema = document_schema(document);

	if (schema && strcmp(schema, smi_document.schema) == 0)
		return document;
	if (!*fetch->problem && hosts_is_other_version(schema))
		snprintf(fetch->problem, sizeof(fetch->problem),
			 "speaks %s, which this ttmem does not know", schema);
	else if (!*fetch->problem)
		strcpy(fetch->problem, "its answer is no ttmem.smi");
	document_unload(&document);
	return NULL;
}

static void hosts_print(const struct smi_hosts *hosts, struct http_fetch *fetches)
{
	uint64_t processes = 0, answers = 0;
	struct snapshot_device device;
	struct process_id process;
	struct smi_fleet fleet;

	smi_fleet_begin(&fleet, "CARD");
	for (size_t i = 0; i < hosts->count; i++) {
		CLEANUP(document_unload) json_t *document = hosts_parse(&fetches[i]);
		size_t at = 0;

		while (document_next(document, "devices", &at, document_device, &device,
				     sizeof(device)))
			hosts_print_device(&fleet, hosts->names[i], &device);
		if (at == 0)
			smi_fleet_lack(&fleet, hosts->names[i],
				       document ? "no device in use" : fetches[i].problem);
		for (at = 0; document_next(document, "processes", &at, document_process_id,
					   &process, sizeof(process));)
			processes++;
		answers += document != NULL;
	}
	if (smi_fleet_end(&fleet, answers > 0))
		printf(", %" PRIu64 " process%s\n", processes, processes == 1 ? "" : "es");
}

struct hosts_answer {
	const struct smi_hosts *hosts;
	struct http_fetch *fetches;
};

struct hosts_row {
	const char *name;
	struct http_fetch *fetch;
};

static const void *hosts_each(const void *context, size_t *at, struct fields_room *room)
{
	const struct hosts_answer *answer = context;
	struct hosts_row *row = FIELDS_IN(room, struct hosts_row);

	if (*at >= answer->hosts->count)
		return NULL;
	*row = (struct hosts_row){answer->hosts->names[*at], &answer->fetches[*at]};
	(*at)++;
	return row;
}

/* Parsed and written anew: the text of another machine could be anything. */
static void hosts_put_smi(struct emit *json, const char *key, const void *row)
{
	struct http_fetch *fetch = ((const struct hosts_row *)row)->fetch;
	CLEANUP(document_unload) json_t *document = hosts_parse(fetch);
	CLEANUP_FREE char *text =
		document ? json_dumps(document, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	if (text)
		emit_raw(json, key, text);
	else
		emit_null(json, key);
	emit_string(json, "problem", text ? NULL : fetch->problem);
}

#define ROW struct hosts_row

static const struct field hosts_answer_shape[] = {
	FIELD_POINTED("smi", fetch, NULL,
		      .says = "its document, as smi.json describes it; null if it gave none"),
	FIELD_OR_NULL("problem", TEXT, name, .says = "why it gave none"),
	FIELD_END,
};

static const struct field hosts_fields[] = {
	FIELD("host", TEXT, name, .says = "as asked for"),
	FIELD_CODED("smi", hosts_put_smi, .fields = hosts_answer_shape),
	FIELD_END,
};

static const struct field hosts_members[] = {
	FIELD_MADE("hosts", hosts_each, hosts_fields),
	FIELD_END,
};

const struct document hosts_document = {
	.schema = "ttmem.hosts/1",
	.title = "ttmem smi --host ... --json: several machines",
	.members = hosts_members,
	.has = DOCUMENT_LIST,
};

static void hosts_json(const struct smi_hosts *hosts, struct http_fetch *fetches)
{
	struct emit json = EMIT_INIT(stdout);

	document_put_about(&json, &hosts_document,
			   &(struct document_about){.time_ns = clock_ns(CLOCK_REALTIME)},
			   &(struct hosts_answer){hosts, fetches});
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
