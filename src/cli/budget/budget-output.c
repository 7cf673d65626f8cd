/* SPDX-License-Identifier: Apache-2.0 */

/* What became of limits, as text, Markdown and JSON; budget-ci.c writes it for CI systems. */

#include "cli/budget/budget-output.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/budget/budget-names.h"
#include "cli/budget/budget-words.h"
#include "cli/common/must.h"
#include "cli/common/run-report.h"
#include "model/merge.h"
#include "model/sites/site-rows.h"
#include "model/types.h"

#define BUDGET_SITES 5u /* shown to people; scripts get all */

void budget_result_judge(struct budget_result *result)
{
	result->verdicts = must_alloc(result->budget.count + 1, sizeof(*result->verdicts));
	result->failed = budget_judge(&result->budget, &result->summary, result->verdicts);
	for (size_t i = 0; i < result->budget.count; i++)
		result->over += result->verdicts[i].is_over;
}

void budget_result_deinit(struct budget_result *result)
{
	budget_deinit(&result->budget);
	budget_summary_deinit(&result->summary);
	free(result->verdicts);
	*result = BUDGET_RESULT_NULL;
}

/* "no frame has this name; near: a, b": what somebody who misspelled it needs to read. */
static void budget_unmatched_words(const struct budget_result *result,
				   const struct budget_limit *limit, char *ret_text, size_t size)
{
	struct budget_near near = budget_near(limit, &result->summary);
	bool is_phase = limit->subject == BUDGET_PHASE;
	char shown[TEXT_ESCAPE_SIZE(BUDGET_NEAR_SIZE)];
	size_t used;

	(void)snprintf(ret_text, size, "not checked, no %s of that name was seen%s",
		       is_phase ? "phase" : "function or file",
		       result->summary.has_all_parts
			       ? ""
			       : " at a peak or at the end (a recording has every moment)");
	for (size_t i = 0; i < near.count; i++) {
		used = strlen(ret_text);
		(void)text_escape(near.names[i], shown, sizeof(shown));
		(void)snprintf(ret_text + used, size - used, "%s%s",
			       i > 0          ? ", "
			       : near.is_near ? "; did you mean "
					      : "; seen were ",
			       shown);
	}
	used = strlen(ret_text);
	if (near.is_near)
		(void)snprintf(ret_text + used, size - used, "?");
}

const char *budget_words(const struct budget_result *result, const struct budget_verdict *verdict,
			 char *ret_text, size_t size)
{
	const struct budget_moment *moment = verdict->moment;
	char limit[TEXT_NUMBER_SIZE], held[TEXT_NUMBER_SIZE], key[BUDGET_KEY_SHOWN];
	char process[64] = "a process", comm[TEXT_ESCAPE_SIZE(16)],
	     why[BUDGET_WORDS - BUDGET_KEY_SHOWN - 64];

	(void)text_escape(verdict->limit->key, key, sizeof(key));
	text_size(verdict->limit->bytes, limit);
	if (verdict->is_unmatched) {
		budget_unmatched_words(result, verdict->limit, why, sizeof(why));
		(void)snprintf(ret_text, size, "limit %s %s: %s", key, limit, why);
		return ret_text;
	}
	if (!moment) {
		(void)snprintf(ret_text, size, "limit %s %s: %s", key, limit,
			       result->summary.is_tracked ? "kept, nothing of it was held"
							  : "nothing was tracked");
		return ret_text;
	}
	if (moment->pid) {
		(void)text_escape(moment->comm ? moment->comm : "?", comm, sizeof(comm));
		(void)snprintf(process, sizeof(process), "pid %" PRIu32 " (%.40s)", moment->pid,
			       comm);
	}
	(void)snprintf(ret_text, size, "limit %s %s: %s, %s held %s%s of %s on device %" PRIu32,
		       key, limit, verdict->is_over ? "exceeded" : "kept", process,
		       verdict->is_exact ? "" : "at least ", text_size(verdict->bytes, held),
		       types_name(moment->type), moment->device);
	return ret_text;
}

const char *budget_part_words(const struct budget_part *part, const char *site, char *ret_text,
			      size_t size)
{
	char plain[POOL_TEXT_MAX * 2];

	if (part->site.rank)
		(void)snprintf(plain, sizeof(plain), "%s", site);
	else
		(void)snprintf(plain, sizeof(plain), "%s%s%s", part->name ? "\"" : "no stack",
			       part->name ? part->name : "", part->name ? "\"" : "");
	(void)text_escape(plain, ret_text, size);
	return ret_text;
}

bool budget_is_then(const struct budget_result *result, const struct budget_verdict *verdict)
{
	const struct budget_moment *moment =
		budget_summary_parts_of(&result->summary, verdict->moment);

	return !moment || moment == verdict->moment;
}

/* Whether an earlier part that counts is of the same row, with another stack. */
static bool budget_is_repeated(const struct budget_verdict *verdict,
			       const struct budget_moment *moment, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (budget_summary_compare_rows(&moment->parts[i], &moment->parts[index]) == 0 &&
		    budget_counts(verdict->limit, &moment->parts[i]))
			return true;
	}
	return false;
}

bool budget_next_part(const struct budget_result *result, const struct budget_verdict *verdict,
		      size_t *at, struct budget_part *ret_part)
{
	const struct budget_moment *moment =
		verdict->moment ? budget_summary_parts_of(&result->summary, verdict->moment) : NULL;

	while (moment && *at < moment->part_count) {
		const size_t index = (*at)++;

		if (!budget_counts(verdict->limit, &moment->parts[index]) ||
		    budget_is_repeated(verdict, moment, index))
			continue;
		*ret_part = moment->parts[index];
		for (size_t i = index + 1; i < moment->part_count; i++) {
			const struct budget_part *more = &moment->parts[i];

			if (budget_summary_compare_rows(more, ret_part) == 0 &&
			    budget_counts(verdict->limit, more))
				ret_part->bytes = merge_add(ret_part->bytes, more->bytes);
		}
		return true;
	}
	return false;
}

void budget_find_rows(const struct budget_result *result, const struct budget_verdict *verdict,
		      size_t max, struct site_rows *ret_rows)
{
	struct budget_part part;
	size_t at = 0;

	for (size_t i = 0; i < max && budget_next_part(result, verdict, &at, &part); i++)
		site_rows_add(ret_rows, &part.site);
	site_rows_finish(ret_rows);
}

/* What was live then, and freed too long ago to know more. */
static void budget_put_rest(const struct budget_verdict *verdict, FILE *out)
{
	const struct budget_moment *moment = verdict->moment;
	char number[TEXT_NUMBER_SIZE];
	uint64_t known = 0;

	for (size_t i = 0; i < moment->part_count; i++)
		known = merge_add(known, moment->parts[i].bytes);
	if (verdict->limit->subject == BUDGET_MEMORY && known > 0 && known < moment->bytes)
		fprintf(out, "    %10s  not known: freed too long ago\n",
			text_size(moment->bytes - known, number));
}

/* The call sites that held most, and when. */
static void budget_put_sites(const struct budget_result *result,
			     const struct budget_verdict *verdict, FILE *out)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	char text[BUDGET_PART_SHOWN], number[TEXT_NUMBER_SIZE];
	struct budget_part part;
	size_t at = 0;

	budget_find_rows(result, verdict, BUDGET_SITES, &rows);
	if (!budget_is_then(result, verdict))
		fputs("    its call sites then are not known; at its end it held\n", out);
	for (unsigned int i = 0; i < BUDGET_SITES && budget_next_part(result, verdict, &at, &part);
	     i++) {
		fprintf(out, "    %10s  %s", text_size(part.bytes, number),
			budget_part_words(&part, site_rows_text(&rows, i), text, sizeof(text)));
		if (part.phase) {
			(void)fputs(", in ", out);
			text_put(out, part.phase);
		}
		(void)fputc('\n', out);
	}
	budget_put_rest(verdict, out);
}

void budget_put_text(const struct budget_result *result, bool all, FILE *out)
{
	char text[BUDGET_WORDS];

	for (size_t i = 0; i < result->budget.count; i++) {
		const struct budget_verdict *verdict = &result->verdicts[i];

		if (!all && !verdict->is_over && !verdict->is_unmatched)
			continue;
		fprintf(out, "%s\n", budget_words(result, verdict, text, sizeof(text)));
		if (verdict->is_over)
			budget_put_sites(result, verdict, out);
	}
}

void budget_put_markdown(const struct budget_result *result, FILE *out)
{
	if (result->budget.count == 0)
		return;
	fprintf(out, "\n| limit | | held | |\n|---|---:|---:|---|\n");
	for (size_t i = 0; i < result->budget.count; i++) {
		const struct budget_verdict *verdict = &result->verdicts[i];
		char limit[TEXT_NUMBER_SIZE], held[TEXT_NUMBER_SIZE] = "";
		char key[BUDGET_KEY_SHOWN];

		(void)text_escape(verdict->limit->key, key, sizeof(key));
		for (char *p = key; *p; p++) {
			if (strchr("|<`", *p))
				*p = '?';
		}
		fprintf(out, "| `%s` | %s | %s%s | %s |\n", key,
			text_size(verdict->limit->bytes, limit),
			verdict->moment && !verdict->is_exact ? "at least " : "",
			verdict->moment ? text_size(verdict->bytes, held) : "not seen",
			verdict->is_over        ? "**exceeded**"
			: verdict->is_unmatched ? "**matches nothing**"
						: "");
	}
}

struct run_report_part budget_part_row(const struct budget_part *part)
{
	return (struct run_report_part){
		.site = {.frame = part->site.frame,
			 .user = part->site.user_rank ? &part->site.user : NULL,
			 .via = part->site.has_via ? &part->site.via : NULL,
			 .callers = part->site.callers,
			 .caller_count = part->site.caller_count},
		.name = part->name,
		.phase = part->phase,
		.calls = part->calls,
		.bytes = part->bytes,
	};
}

/* What became of a limit; and what was held of it. */
struct budget_held {
	const struct budget_result *result;
	const struct budget_verdict *verdict;
	const struct budget_moment *moment;
	const char *sites_at;
};

struct budget_row {
	const struct budget_verdict *verdict;
	const char *limit;
	uint64_t bytes;
	bool is_optional;
	const char *const *near;
	size_t near_count;
	const struct budget_held *held; /* NULL = nothing */
};

struct budget_made {
	struct budget_row row;
	struct budget_held held;
	struct budget_near near;
	const char *names[BUDGET_NEAR_MAX];
};

struct budget_site_made {
	struct run_report_part row;
	struct budget_part part;
};

static const void *budget_site_each(const void *row, size_t *at, struct fields_room *room)
{
	const struct budget_held *held = row;
	struct budget_site_made *made = FIELDS_IN(room, struct budget_site_made);

	if (!budget_next_part(held->result, held->verdict, at, &made->part))
		return NULL;
	made->row = budget_part_row(&made->part);
	return &made->row;
}

static const char *budget_sites_at(uint32_t moment)
{
	return moment == 0 ? "peak" : moment == 1 ? "end" : NULL;
}

#define ROW struct budget_held
#define MOMENT(...) FIELD_VIA(moment, struct budget_moment, __VA_ARGS__)

static const struct field budget_held_fields[] = {
	FIELD_VIA(verdict, struct budget_verdict, "bytes", BYTES, bytes),
	FIELD_VIA(verdict, struct budget_verdict, "exact", BOOL, is_exact,
		  .says = "false: at least that much"),
	MOMENT("pid", SHORT, pid, .absent = FIELD_NULL, .least = 1,
	       .says = "null: a report of an older version, which has only one peak for all "
		       "processes"),
	MOMENT("comm", TEXT, comm, .absent = FIELD_NULL),
	MOMENT("device", SHORT, device),
	MOMENT("type", NAME, type, .names = types_name),
	FIELD_OR_NULL("sites_at", TEXT, sites_at, .names = budget_sites_at,
		      .says = "when the sites held what they did: at the peak, or at the end of "
			      "the process; null: not known"),
	FIELD_MADE("sites", budget_site_each, run_report_site_fields,
		   .says = "what counts for the limit, by call site and phase, largest first"),
	FIELD_END,
};

#undef ROW
#define ROW struct budget_row

static const struct field budget_row_fields[] = {
	FIELD("limit", TEXT, limit, .says = "as it was written: DRAM, 0:L1, phase:decode"),
	FIELD("bytes", BYTES, bytes, .says = "the limit"),
	FIELD_VIA(verdict, struct budget_verdict, "over", BOOL, is_over),
	FIELD("optional", BOOL, is_optional, .is_later = true,
	      .says = "the budget says that a run may hold nothing of it"),
	FIELD_VIA(verdict, struct budget_verdict, "matched", NOT, is_unmatched, .is_later = true,
		  .says = "false: no phase, function or file of that name was seen, so the limit "
			  "was not checked, which is a failure"),
	FIELD_ARRAY_AT("near", TEXTS, near, near_count, .is_later = true,
		       .says = "if it is not matched: names that were seen and resemble it"),
	FIELD_POINTED("held", held, budget_held_fields,
		      .says = "the most that one process held of it, on one device and of one "
			      "type; null: nothing of it was seen"),
	FIELD_END,
};

static const void *budget_each(const void *document, size_t *at, struct fields_room *room)
{
	const struct budget_result *result = document;
	const struct budget_verdict *verdict = &result->verdicts[*at];
	const struct budget_moment *parts;
	struct budget_made *made = FIELDS_IN(room, struct budget_made);

	if ((*at)++ >= result->budget.count)
		return NULL;
	parts = verdict->moment ? budget_summary_parts_of(&result->summary, verdict->moment) : NULL;
	made->held = (struct budget_held){
		.result = result,
		.verdict = verdict,
		.moment = verdict->moment,
		.sites_at = parts ? budget_sites_at(!parts->is_peak) : NULL,
	};
	made->near = (struct budget_near){.count = 0};
	if (verdict->is_unmatched)
		made->near = budget_near(verdict->limit, &result->summary);
	for (size_t i = 0; i < made->near.count; i++)
		made->names[i] = made->near.names[i];
	made->row = (struct budget_row){
		.verdict = verdict,
		.limit = verdict->limit->key,
		.bytes = verdict->limit->bytes,
		.is_optional = verdict->limit->is_optional,
		.near = made->names,
		.near_count = made->near.is_near ? made->near.count : 0,
		.held = verdict->moment ? &made->held : NULL,
	};
	return &made->row;
}

const struct field budget_result_fields[] = {
	FIELD_MADE("limits", budget_each, budget_row_fields),
	FIELD_END,
};
