/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Incidents as log records of OTLP: what one filters and adds up by as attributes, all of it as JSON
 * in the body.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "web/export/exposition-otlp.h"
#include "web/export/push-private.h"
#include "web/export/push.h"
#include "web/server/web.h"

#define PUSH_SEVERITY_WARN 13u

bool push_incident_init(struct push_incident *incident, const struct web_incident *told)
{
	const char *const texts[PUSH_TEXTS] = {
		[PUSH_KIND] = told->kind,           [PUSH_COMM] = told->comm,
		[PUSH_USER_NAME] = told->user_name, [PUSH_SITE] = told->site,
		[PUSH_FUNCTION] = told->function,   [PUSH_FILE] = told->file,
	};

	*incident = (struct push_incident){
		.time_ns = clock_ns(CLOCK_REALTIME),
		.type = told->type,
		.bytes = told->bytes,
		.buffers = told->buffers,
		.count = told->count,
		.pid = told->pid,
		.user = told->user,
		.device = told->device,
		.line = told->line,
	};
	if (told->length > PUSH_INCIDENT_MAX)
		return false;
	incident->texts[PUSH_JSON] = strndup(told->json, told->length);
	for (size_t i = PUSH_KIND; i < PUSH_TEXTS; i++) {
		if (texts[i] && *texts[i])
			incident->texts[i] =
				strdup(texts[i]); /* no memory: a little less is told */
	}
	return incident->texts[PUSH_JSON] && incident->texts[PUSH_KIND];
}

void push_incident_deinit(struct push_incident *incident)
{
	for (size_t i = 0; i < PUSH_TEXTS; i++)
		free(incident->texts[i]);
}

/* The semantic conventions' names where they have one. Numbers that identify something may be 0. */
static void push_attributes(struct emit *json, const struct push_incident *incident)
{
	static const char *const keys[PUSH_TEXTS] = {
		[PUSH_KIND] = "ttmem.kind",
		[PUSH_COMM] = "process.executable.name",
		[PUSH_USER_NAME] = "process.user.name",
		[PUSH_SITE] = "ttmem.site",
		[PUSH_FUNCTION] = "code.function.name",
		[PUSH_FILE] = "code.file.path",
	};
	char number[16];

	exposition_otlp_attribute(json, "event.name", "ttmem.incident");
	for (size_t i = PUSH_KIND; i < PUSH_TEXTS; i++) {
		if (incident->texts[i])
			exposition_otlp_attribute(json, keys[i], incident->texts[i]);
	}
	if (incident->line)
		exposition_otlp_attribute_number(json, "code.line.number", incident->line);
	exposition_otlp_attribute_number(json, "process.pid", incident->pid);
	exposition_otlp_attribute_number(json, "process.user.id", incident->user);
	/* A text, as the label of the metrics. */
	snprintf(number, sizeof(number), "%" PRIu32, incident->device);
	exposition_otlp_attribute(json, "ttmem.device", number);
	if (incident->type)
		exposition_otlp_attribute(json, "ttmem.type", incident->type);
	exposition_otlp_attribute_number(json, "ttmem.bytes", incident->bytes);
	if (incident->buffers)
		exposition_otlp_attribute_number(json, "ttmem.buffers", incident->buffers);
	exposition_otlp_attribute_number(json, "ttmem.count", incident->count);
}

static void push_record(struct emit *json, const struct push_incident *incident)
{
	emit_open_object(json, NULL);
	exposition_otlp_number(json, "timeUnixNano", incident->time_ns);
	exposition_otlp_number(json, "observedTimeUnixNano", incident->time_ns);
	emit_u64(json, "severityNumber", PUSH_SEVERITY_WARN);
	emit_string(json, "severityText", "WARN");
	emit_open_object(json, "body");
	emit_string(json, "stringValue", incident->texts[PUSH_JSON]);
	emit_close_object(json);
	emit_open_array(json, "attributes");
	push_attributes(json, incident);
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
