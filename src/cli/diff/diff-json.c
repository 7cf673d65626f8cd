/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.diff/1. */

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/bits.h"
#include "base/emit.h"
#include "cli/diff/diff.h"
#include "model/types.h"

static const char *diff_kind_name(uint32_t kind)
{
	static const char *const names[] = {"run", "recording"};

	return kind < ARRAY_SIZE(names) ? names[kind] : NULL;
}

static const char *diff_by_name(uint32_t by)
{
	static const char *const names[] = {
		[GROUP_NAME] = "name", [GROUP_PHASE] = "phase", [GROUP_SITE] = "site"};

	return by < ARRAY_SIZE(names) ? names[by] : NULL;
}

static void diff_put_site(struct emit *json, const char *key, const void *row)
{
	const struct summary_change *change = row;

	(void)key;
	call_stack_put_site(json, change->site ? change->site : &SITE_NULL);
}

#define ROW struct summary_amount

static const struct field diff_amount[] = {
	FIELD("before", NUMBER, before),
	FIELD("after", NUMBER, after),
	FIELD("change", SIGNED, change, .says = "after minus before"),
	FIELD_END,
};

#undef ROW
#define ROW struct summary_change
#define VALUE(KEY, AT)                                                                          \
	FIELD_STRUCT(KEY, values[AT], diff_amount, .absent = FIELD_NULL,                        \
		     .known = FIELD_KNOWN(values[AT].is_known),                                 \
		     .says = "peak: bytes at the highest moment of each device and type; end: " \
			     "bytes at the end, or at the moment; buffers: there; allocs, "     \
			     "frees: before it; temporaries: buffers that lived only for a "    \
			     "moment; null: one of the two does not tell it")

/* By enum summary_value. */
static const struct field diff_values[] = {
	VALUE("peak", SUMMARY_PEAK),
	VALUE("end", SUMMARY_END),
	VALUE("buffers", SUMMARY_BUFFERS),
	VALUE("allocs", SUMMARY_ALLOCS),
	VALUE("frees", SUMMARY_FREES),
	VALUE("temporaries", SUMMARY_TEMPORARIES),
	FIELD_END,
};

const char *diff_value_name(enum summary_value value)
{
	return diff_values[value].key;
}

static const struct field diff_total[] = {
	FIELD("device", SHORT, device, .most = BOOK_DEVICES - 1),
	FIELD("type", NAME, type, .names = types_name),
	FIELD_MORE(diff_values),
	FIELD_END,
};

static const struct field diff_row[] = {
	FIELD("type", NAME, type, .names = types_name),
	FIELD_OR_NULL("key", TEXT, key,
		      .says = "of a call site: functions and files of the stack, innermost first, "
			      "without lines; without a stack the name without its numbers, or "
			      "'in ' and the phase; null: it has none of these"),
	FIELD_CODED("site", diff_put_site, .fields = call_stack_chosen),
	FIELD_MORE(diff_values),
	FIELD_END,
};

#undef ROW
#define ROW struct diff_side

static const struct field diff_side[] = {
	FIELD("file", TEXT, file),
	FIELD("kind", TEXT, kind, .names = diff_kind_name),
	FIELD_OR_NULL("at", TEXT, at, .says = "the moment, as it was given; null: the end"),
	FIELD_OR_NULL("command", TEXT, command),
	FIELD("tracked", BOOL, is_tracked),
	FIELD("exact", BOOL, is_exact),
	FIELD_END,
};

#undef ROW
#define ROW struct diff

static const struct field diff_members[] = {
	FIELD_STRUCT("before", sides[0], diff_side),
	FIELD_STRUCT("after", sides[1], diff_side),
	FIELD("by", NAME, by, .names = diff_by_name, .says = "what rows are of"),
	FIELD_ARRAY_AT("totals", ROWS, totals.list, totals.count, .fields = diff_total,
		       .says = "each device and type that one of the two has used, changed or not"),
	FIELD_ARRAY_AT("rows", ROWS, rows.list, rows.count, .fields = diff_row,
		       .says = "what has changed, the largest change first; over all devices"),
	FIELD_IF(is_limited, "exceeded", BOOL, is_exceeded,
		 .says = "null: --fail-above was not given"),
	FIELD_END,
};

const struct document diff_document = {
	.schema = "ttmem.diff/1",
	.title = "ttmem diff --json",
	.members = diff_members,
	.has = DOCUMENT_LIST,
};

void diff_json(const struct diff *diff, uint64_t time_ns, FILE *out)
{
	struct emit json = EMIT_INIT(out);
	const char *note = diff->note;
	const struct document_about about = {
		.time_ns = time_ns,
		.is_partial = !diff->sides[0].is_exact || !diff->sides[1].is_exact,
		.notes = &note,
		.note_count = *note != 0,
	};

	document_put_about(&json, &diff_document, &about, diff);
}
