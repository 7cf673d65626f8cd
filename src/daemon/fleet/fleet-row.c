/* SPDX-License-Identifier: Apache-2.0 */

/* Reads what a machine says of itself, and decides what comes first. */

#include "daemon/fleet/fleet-row.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/emit.h"
#include "model/types.h"
#include "source/fleet/host-url.h"

#define FLEET_FULL_PART 0.9

static const char *const fleet_troubles[FLEET_TROUBLES] = {
	[FLEET_SILENT] = "silent", [FLEET_FULL] = "full",         [FLEET_INCIDENTS] = "incidents",
	[FLEET_GROWS] = "grows",   [FLEET_DEGRADED] = "degraded",
};

static double fleet_part(const struct fleet_amount *amount)
{
	return amount->capacity ? (double)amount->used / (double)amount->capacity : 0;
}

bool fleet_row_has(const struct fleet_row *row, enum fleet_trouble trouble)
{
	switch (trouble) {
	case FLEET_SILENT:
		return *row->problem;
	case FLEET_FULL:
		return row->has_fullest && fleet_part(&row->fullest) > FLEET_FULL_PART;
	case FLEET_INCIDENTS:
		return row->incidents > 0;
	case FLEET_GROWS:
		return row->growth > FLEET_GROWTH_MIN;
	case FLEET_DEGRADED:
		return row->is_degraded;
	case FLEET_TROUBLES:
		break;
	}
	return false;
}

/* Invalid and negative numbers are 0. */
static uint64_t fleet_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static struct fleet_amount fleet_amount(const json_t *object)
{
	return (struct fleet_amount){
		.used = fleet_number(object, "used"),
		.capacity = fleet_number(object, "capacity"),
	};
}

static bool fleet_is(const json_t *object, const char *key, const char *wanted)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && strcmp(text, wanted) == 0;
}

static void fleet_row_read(struct fleet_row *row, const json_t *document)
{
	const json_t *memory = json_object_get(document, "memory");
	const json_t *fullest = json_object_get(document, "fullest");
	const json_t *hour = json_object_get(document, "hour");
	json_int_t growth = json_integer_value(json_object_get(hour, "bytes"));

	row->is_degraded = !fleet_is(document, "status", "ok");
	row->start_ns = fleet_number(document, "start_ns");
	row->devices = fleet_number(document, "devices");
	row->processes = fleet_number(document, "processes");
	row->bytes = fleet_number(document, "bytes");
	row->buffers = fleet_number(document, "buffers");
	row->dram = fleet_amount(json_object_get(memory, "DRAM"));
	row->l1 = fleet_amount(json_object_get(memory, "L1"));
	row->fullest = fleet_amount(fullest);
	row->device = fleet_number(fullest, "device");
	row->type = fleet_is(fullest, "type", "L1") ? TYPES_L1 : TYPES_DRAM;
	row->has_fullest = row->fullest.capacity > 0;
	row->incidents = fleet_number(hour, "incidents");
	row->over_ns = fleet_number(hour, "over_ns");
	row->growth = row->over_ns ? growth : 0;
}

void fleet_row_parse(struct fleet_row *row, const char *text, size_t length)
{
	json_t *document = json_loadb(text, length, 0, NULL);

	if (fleet_is(document, "schema", "ttmem.host/1"))
		fleet_row_read(row, document);
	else
		strcpy(row->problem, "its answer is no ttmem.host");
	json_decref(document);
}

/* The first of two rows has more of something that is the same trouble: negative. */
static int fleet_row_degree(const struct fleet_row *a, const struct fleet_row *b,
			    enum fleet_trouble trouble)
{
	double left = 0, right = 0;

	if (trouble == FLEET_FULL) {
		left = fleet_part(&a->fullest);
		right = fleet_part(&b->fullest);
	} else if (trouble == FLEET_INCIDENTS) {
		return (a->incidents < b->incidents) - (a->incidents > b->incidents);
	} else if (trouble == FLEET_GROWS) {
		return (a->growth < b->growth) - (a->growth > b->growth);
	}
	return (left < right) - (left > right);
}

int fleet_row_compare(const void *left, const void *right)
{
	const struct fleet_row *a = left, *b = right;

	for (enum fleet_trouble trouble = 0; trouble < FLEET_TROUBLES; trouble++) {
		bool has_a = fleet_row_has(a, trouble), has_b = fleet_row_has(b, trouble);
		int r = has_b - has_a;

		if (r == 0 && has_a)
			r = fleet_row_degree(a, b, trouble);
		if (r != 0)
			return r;
	}
	return strverscmp(a->host, b->host);
}

static void fleet_put_amount(struct emit *json, const struct fleet_amount *amount)
{
	emit_u64(json, "used", amount->used);
	if (amount->capacity)
		emit_u64(json, "capacity", amount->capacity);
	else
		emit_null(json, "capacity");
}

/* The members of its own document. */
static void fleet_row_write_facts(const struct fleet_row *row, struct emit *json)
{
	emit_u64(json, "start_ns", row->start_ns);
	emit_u64(json, "devices", row->devices);
	emit_u64(json, "processes", row->processes);
	emit_u64(json, "bytes", row->bytes);
	emit_u64(json, "buffers", row->buffers);
	emit_open_object(json, "memory");
	emit_open_object(json, "DRAM");
	fleet_put_amount(json, &row->dram);
	emit_close_object(json);
	emit_open_object(json, "L1");
	fleet_put_amount(json, &row->l1);
	emit_close_object(json);
	emit_close_object(json);
	if (row->has_fullest) {
		emit_open_object(json, "fullest");
		emit_u64(json, "device", row->device);
		emit_string(json, "type", types_name(row->type));
		fleet_put_amount(json, &row->fullest);
		emit_close_object(json);
	} else {
		emit_null(json, "fullest");
	}
	emit_open_object(json, "hour");
	emit_u64(json, "over_ns", row->over_ns);
	emit_i64(json, "bytes", row->growth);
	emit_u64(json, "incidents", row->incidents);
	emit_close_object(json);
}

void fleet_row_write(const struct fleet_row *row, struct emit *json)
{
	char *url = host_url(row->host, "/");

	emit_open_object(json, NULL);
	emit_string(json, "host", row->host);
	emit_string(json, "url", url);
	emit_string(json, "problem", *row->problem ? row->problem : NULL);
	emit_open_array(json, "trouble");
	for (enum fleet_trouble trouble = 0; trouble < FLEET_TROUBLES; trouble++) {
		if (fleet_row_has(row, trouble))
			emit_string(json, NULL, fleet_troubles[trouble]);
	}
	emit_close_array(json);
	if (*row->problem) {
		emit_null(json, "facts");
	} else {
		emit_open_object(json, "facts");
		fleet_row_write_facts(row, json);
		emit_close_object(json);
	}
	emit_close_object(json);
	free(url);
}
