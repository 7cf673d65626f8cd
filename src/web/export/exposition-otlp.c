/* SPDX-License-Identifier: Apache-2.0 */

/* Metrics and their envelope as OTLP JSON. */

#include "web/export/exposition-otlp.h"

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"

#define OTLP_CUMULATIVE 2u /* AGGREGATION_TEMPORALITY_CUMULATIVE */
#define OTLP_NS_PER_S 1e9

void exposition_otlp_number(struct emit *json, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	emit_string(json, key, text);
}

void exposition_otlp_attribute(struct emit *json, const char *key, const char *value)
{
	emit_open_object(json, NULL);
	emit_string(json, "key", key);
	emit_open_object(json, "value");
	emit_string(json, "stringValue", value);
	emit_close_object(json);
	emit_close_object(json);
}

void exposition_otlp_attribute_number(struct emit *json, const char *key, uint64_t value)
{
	emit_open_object(json, NULL);
	emit_string(json, "key", key);
	emit_open_object(json, "value");
	/* The field is signed. */
	exposition_otlp_number(json, "intValue", bits_min(value, INT64_MAX));
	emit_close_object(json);
	emit_close_object(json);
}

void exposition_otlp_resource(struct emit *json, const struct exposition_origin *origin)
{
	const struct exposition_attribute own[] = {
		{"service.name", "ttmemd"},
		{"service.version", origin->version},
		{"service.instance.id", origin->host},
		{"host.name", origin->host},
	};

	emit_open_object(json, "resource");
	emit_open_array(json, "attributes");
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		if (!exposition_has_attribute(origin->attributes, origin->attribute_count,
					      own[i].name))
			exposition_otlp_attribute(json, own[i].name, own[i].value);
	}
	for (size_t i = 0; i < origin->attribute_count; i++)
		exposition_otlp_attribute(json, origin->attributes[i].name,
					  origin->attributes[i].value);
	emit_close_array(json);
	emit_close_object(json);
}

void exposition_otlp_scope(struct emit *json, const struct exposition_origin *origin)
{
	emit_open_object(json, "scope");
	emit_string(json, "name", "ttmem");
	emit_string(json, "version", origin->version);
	emit_close_object(json);
}

void exposition_otlp_start(struct exposition *to)
{
	to->json = EMIT_INIT(to->out);
	emit_open_object(&to->json, NULL);
	emit_open_array(&to->json, "resourceMetrics");
	emit_open_object(&to->json, NULL);
	exposition_otlp_resource(&to->json, to->origin);
	emit_open_array(&to->json, "scopeMetrics");
	emit_open_object(&to->json, NULL);
	exposition_otlp_scope(&to->json, to->origin);
	emit_open_array(&to->json, "metrics");
}

/* Ends the previous family, if any. */
static void otlp_close_family(struct exposition *to)
{
	if (!to->name)
		return;
	emit_close_array(&to->json);
	emit_close_object(&to->json);
	emit_close_object(&to->json);
}

/* UCUM spelling. */
static const char *otlp_unit(const char *unit)
{
	static const char *const units[][2] = {
		{"bytes", "By"}, {"seconds", "s"}, {"celsius", "Cel"}, {"watts", "W"},
		{"volts", "V"},  {"amperes", "A"}, {"hertz", "Hz"},
	};

	for (size_t i = 0; unit && i < ARRAY_SIZE(units); i++) {
		if (strcmp(unit, units[i][0]) == 0)
			return units[i][1];
	}
	return "1";
}

void exposition_otlp_family(struct exposition *to, const char *name, enum exposition_type type,
			    const char *unit, const char *help)
{
	otlp_close_family(to);
	to->name = name;
	to->type = type;
	emit_open_object(&to->json, NULL);
	emit_string(&to->json, "name", name);
	emit_string(&to->json, "description", help);
	emit_string(&to->json, "unit", otlp_unit(unit));
	if (type == EXPOSITION_COUNTER) {
		emit_open_object(&to->json, "sum");
		emit_u64(&to->json, "aggregationTemporality", OTLP_CUMULATIVE);
		emit_bool(&to->json, "isMonotonic", true);
	} else {
		emit_open_object(&to->json, "gauge");
	}
	emit_open_array(&to->json, "dataPoints");
}

void exposition_otlp_begin(struct exposition *to)
{
	emit_open_object(&to->json, NULL);
	emit_open_array(&to->json, "attributes");
}

void exposition_otlp_label(struct exposition *to, const char *key, const char *value)
{
	exposition_otlp_attribute(&to->json, key, value);
}

static void otlp_close_labels(struct exposition *to)
{
	emit_close_array(&to->json);
	if (to->type == EXPOSITION_COUNTER)
		exposition_otlp_number(&to->json, "startTimeUnixNano", to->origin->start_ns);
	exposition_otlp_number(&to->json, "timeUnixNano", to->origin->time_ns);
}

void exposition_otlp_u64(struct exposition *to, uint64_t value)
{
	otlp_close_labels(to);
	/* The field is signed. */
	exposition_otlp_number(&to->json, "asInt", bits_min(value, INT64_MAX));
	emit_close_object(&to->json);
}

void exposition_otlp_seconds(struct exposition *to, uint64_t ns)
{
	char text[40];

	otlp_close_labels(to);
	snprintf(text, sizeof(text), "%.9f", (double)ns / OTLP_NS_PER_S);
	emit_raw(&to->json, "asDouble", text);
	emit_close_object(&to->json);
}

void exposition_otlp_milli(struct exposition *to, int64_t thousandths)
{
	char text[40];

	otlp_close_labels(to);
	snprintf(text, sizeof(text), "%.3f", (double)thousandths / 1000);
	emit_raw(&to->json, "asDouble", text);
	emit_close_object(&to->json);
}

void exposition_otlp_end(struct exposition *to)
{
	otlp_close_family(to);
	for (int i = 0; i < 2; i++) {
		emit_close_array(&to->json);
		emit_close_object(&to->json);
	}
	emit_close_array(&to->json);
	emit_close_object(&to->json);
	emit_end(&to->json);
}
