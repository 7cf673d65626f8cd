/* SPDX-License-Identifier: Apache-2.0 */

/* Call sites in documents. */

#include "answers/sites.h"

#include "model/types.h"

#define ROW struct call_site

static const struct field site_name_fields[] = {
	FIELD_OR_NULL("name", TEXT, name),
	FIELD_OR_NULL("phase", TEXT, phase, .says = "without a name"),
	FIELD("bytes", BYTES, bytes),
	FIELD("buffers", NUMBER, buffers, .least = 1),
	FIELD_END,
};

#undef ROW
#define ROW struct site_names

const struct field site_names_fields[] = {
	FIELD_OR_NULL("name", TEXT, name, .says = "that all have; null: none, or several"),
	FIELD_OR_NULL("name_count", NUMBER, count, .least = 1,
		      .says = "how many names there are; null: an earlier version recorded it"),
	FIELD_ARRAY_AT("names", ROWS, names, listed, .fields = site_name_fields,
		       .says = "what each has, largest first; the rest is only counted"),
	FIELD_END,
};

#undef ROW
#define ROW struct site_row

const struct field site_fields[] = {
	FIELD_OR_NULL("type", NAME, type, .names = types_name),
	FIELD_MORE_OF(names, site_names_fields),
	FIELD_OR_NULL("phase", TEXT, phase),
	FIELD_MORE_OF(stack, call_stack_fields),
	FIELD("bytes", BYTES, bytes),
	FIELD("buffers", NUMBER, buffers),
	FIELD_END,
};

const struct field site_leak_fields[] = {
	FIELD_OR_NULL("type", NAME, type, .names = types_name),
	FIELD_MORE_OF(names, site_names_fields),
	FIELD_OR_NULL("phase", TEXT, phase, .says = "the first of phases"),
	FIELD_ARRAY_AT("phases", TEXTS, phases, phase_count,
		       .says = "of its buffers, each once, those of the largest buffers first"),
	FIELD_MORE_OF(stack, call_stack_fields),
	FIELD("bytes", BYTES, bytes),
	FIELD("buffers", NUMBER, buffers),
	FIELD("oldest_ns", TIME, oldest_ns),
	FIELD_END,
};

struct site_names site_names_of(const struct call_site *names, size_t listed, size_t count)
{
	return (struct site_names){
		.name = count == 1 && listed ? names->name : NULL,
		.count = count,
		.names = names,
		.listed = listed,
	};
}
