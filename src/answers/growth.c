/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.growth/1: call sites of living processes whose bytes keep growing. */

#include "answers/growth.h"

#include "answers/document.h"
#include "answers/sites.h"
#include "model/sites/growth.h"
#include "model/types.h"

struct growth_row {
	const struct growth_site *site;
	struct site_names names;
	struct call_stack stack;
	uint64_t bytes_before, grown, buffers_before, looked_ns;
	double per_second;
	const char *confidence;
	struct call_stack_room room;
};

struct growth_answer {
	const struct growth *growth;
	uint64_t span_ns;
	const struct growth_trend *trends;
	size_t trend_count;
};

#define ROW struct growth_row
#define SITE(...) FIELD_VIA(site, struct growth_site, __VA_ARGS__)

static const struct field growth_fields[] = {
	SITE("pid", SHORT, process.pid, .least = 1),
	SITE("comm", TEXT, comm),
	SITE("type", NAME, last.type, .names = types_name),
	FIELD_MORE_OF(names, site_names_fields),
	SITE("phase", TEXT, last.phase, .absent = FIELD_NULL),
	FIELD_MORE_OF(stack, call_stack_fields),
	SITE("bytes", BYTES, last.bytes),
	FIELD("bytes_before", BYTES, bytes_before),
	FIELD("grown", BYTES, grown),
	SITE("buffers", NUMBER, last.buffers),
	FIELD("buffers_before", NUMBER, buffers_before),
	FIELD("per_second", DOUBLE, per_second),
	FIELD("looked_ns", SPAN, looked_ns),
	FIELD("confidence", TEXT, confidence),
	SITE("oldest_ns", TIME, last.oldest_ns),
	{.key = "ages",
	 .kind = FIELD_NUMBERS,
	 .via = 1 + offsetof(ROW, site),
	 .offset = offsetof(struct growth_site, last.ages),
	 .size = sizeof(uint64_t),
	 .room = CALL_SITE_AGES},
	FIELD_END,
};

#undef ROW
#define ROW struct growth_trend

static const struct field growth_trends[] = {
	FIELD("pid", SHORT, pid),
	FIELD("from_ns", TIME, first_ns),
	FIELD("to_ns", TIME, last_ns),
	FIELD("bytes_before", BYTES, first_bytes),
	FIELD("bytes", BYTES, last_bytes),
	FIELD("bytes_per_second", DOUBLE, per_second),
	FIELD_END,
};

/* @room: for a row. */
static const void *growth_each(const void *context, size_t *at, struct fields_room *room)
{
	const struct growth_answer *answer = context;
	const struct growth *growth = answer->growth;
	const struct growth_site *site = &growth->sites[*at];
	struct growth_row *row = FIELDS_IN(room, struct growth_row);
	uint64_t bytes, buffers;

	if (*at >= growth->count)
		return NULL;
	(*at)++;
	bytes = growth_bytes(site);
	buffers = growth_buffers(site);
	*row = (struct growth_row){
		.site = site,
		.names = site_names_of(growth->names + site->last.first_name, site->listed,
				       site->last.names),
		.bytes_before = site->last.bytes - bytes,
		.grown = bytes,
		.buffers_before = site->last.buffers - buffers,
		.per_second = growth_per_second(growth, site),
		.looked_ns = growth_span(growth, site),
		.confidence = growth_confidence_name(growth_confidence(growth, site)),
	};
	row->stack = call_stack_of(site->last.stack, &row->room);
	return row;
}

void growth_put_sites(struct emit *json, const struct growth *growth)
{
	const struct growth_answer answer = {.growth = growth};
	struct fields_room room;
	const void *row;
	size_t at = 0;

	while ((row = growth_each(&answer, &at, &room)))
		fields_put_row(json, growth_fields, row);
}

#undef ROW
#define ROW struct growth_answer
#define GROWTH(...) FIELD_VIA(growth, struct growth, __VA_ARGS__)

static const struct field growth_members[] = {
	GROWTH("samples", SHORT, samples),
	FIELD("span_ns", SPAN, span_ns),
	GROWTH("past_ns", SPAN, past_ns),
	FIELD_MADE("sites", growth_each, growth_fields),
	FIELD_ARRAY_AT("trends", ROWS, trends, trend_count, .fields = growth_trends),
	FIELD_END,
};

const struct document growth_document = {
	.schema = "ttmem.growth/1",
	.title = "ttmem growth --json: call sites of living processes whose bytes keep growing",
	.members = growth_members,
	.has = DOCUMENT_FROM | DOCUMENT_LIST,
};

void growth_put(struct emit *json, const struct snapshot *snapshot, const struct growth *growth)
{
	const struct growth_answer answer = {
		.growth = growth,
		.span_ns = growth->last_ns - growth->first_ns,
		.trends = growth->trends,
		.trend_count = growth->trend_count,
	};

	document_put(json, &growth_document, snapshot, &answer);
}
