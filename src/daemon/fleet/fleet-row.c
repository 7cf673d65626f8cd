/* SPDX-License-Identifier: Apache-2.0 */

/* Reads what a machine says of itself, and decides what comes first. */

#include "daemon/fleet/fleet-row.h"

#include <string.h>

#include "answers/document-take.h"
#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "source/fleet/host-url.h"

#define FLEET_FULL_PART 0.9

/* What is made of a row for its document. */
struct fleet_state {
	const char *url, *problem;
	uint32_t trouble; /* a bit for each */
};

static const char *fleet_trouble_name(uint32_t trouble)
{
	static const char *const names[FLEET_TROUBLES] = {
		[FLEET_SILENT] = "silent",       [FLEET_FULL] = "full",
		[FLEET_INCIDENTS] = "incidents", [FLEET_GROWS] = "grows",
		[FLEET_DEGRADED] = "degraded",
	};

	return trouble < FLEET_TROUBLES ? names[trouble] : NULL;
}

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
	CLEANUP(document_unload) struct json_t *document = document_load(text, length);
	struct host_row *facts = &row->facts;

	row->has_facts = fleet_is(document_schema(document), host_document.schema);
	if (row->has_facts) {
		(void)fields_take(document, host_fields, facts, NULL);
		row->is_degraded = !fleet_is(facts->status, "ok");
		facts->status = NULL; /* it is the document's */
		facts->has_fullest = facts->fullest.amount.capacity > 0;
		if (!facts->hour.over_ns)
			facts->hour.bytes = 0;
	} else {
		strcpy(row->problem, "its answer is no ttmem.host");
	}
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

#define ROW struct fleet_state

static const struct field fleet_state_fields[] = {
	FIELD_OR_NULL("url", TEXT, url, .says = "of its page"),
	FIELD_OR_NULL("problem", TEXT, problem,
		      .says = "why nothing is known of it; null if it has answered"),
	FIELD("trouble", FLAGS, trouble, .names = fleet_trouble_name,
	      .says = "worst first. silent: it does not answer, or not as it should; full: memory "
		      "of a device is more than 90 % full; incidents: within the last hour; grows: "
		      "by more than 256 MiB within the last hour; degraded: something does not "
		      "work there"),
	FIELD_END,
};

static void fleet_put_state(struct emit *json, const char *key, const void *context)
{
	const struct fleet_row *row = context;
	CLEANUP_FREE char *url = host_url(row->host, "/");
	struct fleet_state state = {
		.url = url,
		.problem = *row->problem ? row->problem : NULL,
	};

	(void)key;
	for (enum fleet_trouble trouble = 0; trouble < FLEET_TROUBLES; trouble++)
		state.trouble |= (uint32_t)fleet_row_has(row, trouble) << trouble;
	fields_put(json, fleet_state_fields, &state);
}

#undef ROW
#define ROW struct fleet_row

const struct field fleet_row_fields[] = {
	FIELD("host", TEXT, host,
	      .says = "as in the settings, or the label instance of Prometheus"),
	FIELD_CODED("", fleet_put_state, .fields = fleet_state_fields),
	FIELD_STRUCT("facts", facts, host_facts, .absent = FIELD_NULL,
		     .known = FIELD_KNOWN(has_facts),
		     .says = "members of its own document, as host.json describes them; null if it "
			     "has not answered"),
	FIELD_END,
};
