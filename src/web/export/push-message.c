/* SPDX-License-Identifier: Apache-2.0 */

/* Incidents as log records of OTLP: kind and call site as attributes, all of it as JSON in the body. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "web/export/exposition-otlp.h"
#include "web/export/push-private.h"

#define PUSH_SEVERITY_WARN 13u

void push_incident_deinit(struct push_incident *incident)
{
	free(incident->kind);
	free(incident->site);
	free(incident->json);
}

static void push_record(struct emit *json, const struct push_incident *incident)
{
	char number[16];

	emit_open_object(json, NULL);
	exposition_otlp_number(json, "timeUnixNano", incident->time_ns);
	exposition_otlp_number(json, "observedTimeUnixNano", incident->time_ns);
	emit_u64(json, "severityNumber", PUSH_SEVERITY_WARN);
	emit_string(json, "severityText", "WARN");
	emit_open_object(json, "body");
	emit_string(json, "stringValue", incident->json);
	emit_close_object(json);
	emit_open_array(json, "attributes");
	exposition_otlp_attribute(json, "event.name", "ttmem.incident");
	exposition_otlp_attribute(json, "ttmem.kind", incident->kind);
	snprintf(number, sizeof(number), "%" PRIu32, incident->pid);
	exposition_otlp_attribute(json, "process.pid", number);
	snprintf(number, sizeof(number), "%" PRIu32, incident->device);
	exposition_otlp_attribute(json, "ttmem.device", number);
	if (incident->site)
		exposition_otlp_attribute(json, "ttmem.site", incident->site);
	emit_close_array(json);
	emit_close_object(json);
}

int push_message_logs(const struct exposition_origin *origin, const struct push_incident *incidents,
		      size_t count, char **ret_text, size_t *ret_length)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	struct emit json = EMIT_INIT(out);

	if (!out)
		return -ENOMEM;
	emit_open_object(&json, NULL);
	emit_open_array(&json, "resourceLogs");
	emit_open_object(&json, NULL);
	exposition_otlp_resource(&json, origin);
	emit_open_array(&json, "scopeLogs");
	emit_open_object(&json, NULL);
	exposition_otlp_scope(&json, origin);
	emit_open_array(&json, "logRecords");
	for (size_t i = 0; i < count; i++)
		push_record(&json, &incidents[i]);
	for (int i = 0; i < 3; i++) {
		emit_close_array(&json);
		emit_close_object(&json);
	}
	emit_end(&json);
	if (fclose(out) != 0) {
		free(text);
		return -ENOMEM;
	}
	*ret_text = text;
	*ret_length = length;
	return 0;
}
