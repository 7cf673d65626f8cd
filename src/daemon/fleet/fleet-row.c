/* SPDX-License-Identifier: Apache-2.0 */

/* Reads what a machine says of itself, and decides what comes first. */

#include "daemon/fleet/fleet-row.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/emit.h"
#include "source/fleet/host-url.h"

#define FLEET_FULL_PART 0.9

static const char *const fleet_troubles[FLEET_TROUBLES] = {
	[FLEET_SILENT] = "silent", [FLEET_FULL] = "full",         [FLEET_INCIDENTS] = "incidents",
	[FLEET_GROWS] = "grows",   [FLEET_DEGRADED] = "degraded",
};

static double fleet_part(const struct fleet_row *row)
{
	const struct host_amount *amount = &row->facts.fullest.amount;

	return amount->capacity ? (double)amount->used / (double)amount->capacity : 0;
}

bool fleet_row_has(const struct fleet_row *row, enum fleet_trouble trouble)
{
	switch (trouble) {
	case FLEET_SILENT:
		return *row->problem;
	case FLEET_FULL:
		return row->facts.has_fullest && fleet_part(row) > FLEET_FULL_PART;
	case FLEET_INCIDENTS:
		return row->facts.hour.incidents > 0;
	case FLEET_GROWS:
		return row->facts.hour.bytes > FLEET_GROWTH_MIN;
	case FLEET_DEGRADED:
		return row->is_degraded;
	case FLEET_TROUBLES:
		break;
	}
	return false;
}

static bool fleet_is(const char *text, const char *wanted)
{
	return text && strcmp(text, wanted) == 0;
}

void fleet_row_parse(struct fleet_row *row, const char *text, size_t length)
{
	json_t *document = json_loadb(text, length, 0, NULL);
	struct host_row *facts = &row->facts;

	if (fleet_is(json_string_value(json_object_get(document, "schema")), "ttmem.host/1")) {
		(void)fields_take(document, host_fields, facts, NULL);
		row->is_degraded = !fleet_is(facts->status, "ok");
		facts->status = NULL; /* it is the document's */
		facts->has_fullest = facts->fullest.amount.capacity > 0;
		if (!facts->hour.over_ns)
			facts->hour.bytes = 0;
	} else {
		strcpy(row->problem, "its answer is no ttmem.host");
	}
	json_decref(document);
}

/* The first of two rows has more of something that is the same trouble: negative. */
static int fleet_row_degree(const struct fleet_row *a, const struct fleet_row *b,
			    enum fleet_trouble trouble)
{
	double left = 0, right = 0;

	if (trouble == FLEET_FULL) {
		left = fleet_part(a);
		right = fleet_part(b);
	} else if (trouble == FLEET_INCIDENTS) {
		return bits_compare(b->facts.hour.incidents, a->facts.hour.incidents);
	} else if (trouble == FLEET_GROWS) {
		return (a->facts.hour.bytes < b->facts.hour.bytes) -
		       (a->facts.hour.bytes > b->facts.hour.bytes);
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
		fields_put(json, host_facts, &row->facts);
		emit_close_object(json);
	}
	emit_close_object(json);
	free(url);
}
