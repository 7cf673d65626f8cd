/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem.diff/1. */

#include "answers/call-stack.h"
#include "answers/document.h"
#include "base/emit.h"
#include "cli/diff/diff.h"
#include "model/sites/site.h"
#include "model/types.h"

const char *diff_value_name(enum summary_value value)
{
	static const char *const names[SUMMARY_VALUES] = {
		[SUMMARY_PEAK] = "peak",       [SUMMARY_END] = "end",
		[SUMMARY_BUFFERS] = "buffers", [SUMMARY_ALLOCS] = "allocs",
		[SUMMARY_FREES] = "frees",     [SUMMARY_TEMPORARIES] = "temporaries",
	};

	return names[value];
}

static void diff_json_side(struct emit *json, const char *key, const struct diff_side *side)
{
	emit_open_object(json, key);
	emit_string(json, "file", side->file);
	emit_string(json, "kind", side->kind);
	emit_string(json, "at", side->at);
	emit_string(json, "command", side->command);
	emit_bool(json, "tracked", side->is_tracked);
	emit_bool(json, "exact", side->is_exact);
	emit_close_object(json);
}

static void diff_json_values(struct emit *json, const struct summary_change *change, uint32_t known)
{
	for (uint32_t value = 0; value < SUMMARY_VALUES; value++) {
		if (!(known >> value & 1)) {
			emit_null(json, diff_value_name(value));
			continue;
		}
		emit_open_object(json, diff_value_name(value));
		emit_u64(json, "before", change->before[value]);
		emit_u64(json, "after", change->after[value]);
		emit_i64(json, "change", summary_change(change, value));
		emit_close_object(json);
	}
}

static void diff_json_totals(struct emit *json, const struct summary_changes *totals)
{
	emit_open_array(json, "totals");
	for (size_t i = 0; i < totals->count; i++) {
		const struct summary_change *change = &totals->list[i];

		emit_open_object(json, NULL);
		emit_u64(json, "device", change->device);
		emit_string(json, "type", types_name(change->type));
		diff_json_values(json, change, totals->known);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static void diff_json_rows(struct emit *json, const struct summary_changes *rows)
{
	emit_open_array(json, "rows");
	for (size_t i = 0; i < rows->count; i++) {
		const struct summary_change *change = &rows->list[i];

		emit_open_object(json, NULL);
		emit_string(json, "type", types_name(change->type));
		emit_string(json, "key", change->key);
		call_stack_put_site(json, change->site ? change->site : &(struct site){.rank = 0});
		diff_json_values(json, change, rows->known);
		emit_close_object(json);
	}
	emit_close_array(json);
}

static const char *diff_json_kind(const struct diff *diff)
{
	enum group_kind kind = diff->sides[0].summary.kind;

	if (kind == GROUP_PHASE)
		return "phase";
	return kind == GROUP_NAME ? "name" : "site";
}

void diff_json(const struct diff *diff, uint64_t time_ns, FILE *out)
{
	struct emit json = EMIT_INIT(out);

	document_open(&json, "ttmem.diff/1", time_ns);
	diff_json_side(&json, "before", &diff->sides[0]);
	diff_json_side(&json, "after", &diff->sides[1]);
	emit_string(&json, "by", diff_json_kind(diff));
	diff_json_totals(&json, &diff->totals);
	diff_json_rows(&json, &diff->rows);
	if (diff->is_limited)
		emit_bool(&json, "exceeded", diff->is_exceeded);
	else
		emit_null(&json, "exceeded");
	document_list_end(&json, diff->sides[0].is_exact && diff->sides[1].is_exact);
	emit_open_array(&json, "notes");
	if (*diff->note)
		emit_string(&json, NULL, diff->note);
	emit_close_array(&json);
	emit_close_object(&json);
	emit_end(&json);
}
