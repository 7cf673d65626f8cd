/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.growth/1: call sites of living processes whose bytes keep growing. */

#include "model/sites/growth.h"

#include "answers/document.h"
#include "answers/sites.h"
#include "base/emit.h"
#include "model/snapshot.h"
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

void document_growth_sites(struct emit *json, const struct growth *growth)
{
	for (size_t i = 0; i < growth->count; i++) {
		const struct growth_site *site = &growth->sites[i];
		uint64_t bytes = growth_bytes(site), buffers = growth_buffers(site);
		struct growth_row row = {
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

		row.stack = call_stack_of(site->last.stack, &row.room);
		fields_put_row(json, growth_fields, &row);
	}
}

void document_growth(struct emit *json, const struct snapshot *snapshot,
		     const struct growth *growth)
{
	document_open_at(json, "ttmem.growth/1", snapshot);
	emit_u64(json, "samples", growth->samples);
	emit_u64(json, "span_ns", growth->last_ns - growth->first_ns);
	emit_u64(json, "past_ns", growth->past_ns);
	emit_open_array(json, "sites");
	document_growth_sites(json, growth);
	emit_close_array(json);
	emit_open_array(json, "trends");
	for (size_t i = 0; i < growth->trend_count; i++)
		fields_put_row(json, growth_trends, &growth->trends[i]);
	emit_close_array(json);
	document_list_end(json, snapshot->exact);
	document_close(json, snapshot);
}
