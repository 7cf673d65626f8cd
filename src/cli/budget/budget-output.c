/* SPDX-License-Identifier: Apache-2.0 */

/* What became of limits, as text, Markdown and JSON; budget-ci.c writes it for CI systems. */

#include "cli/budget/budget-output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/emit.h"
#include "base/text.h"
#include "cli/budget/budget-names.h"
#include "cli/budget/budget-words.h"
#include "cli/common/must.h"
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

static struct site budget_part_site(const struct budget_part *part)
{
	struct site site = {
		.frame = {.function = part->function, .file = part->file, .line = part->line},
		.rank = part->function || part->file,
		.user = part->user,
		.user_rank = part->user.function || part->user.file,
		.via = part->via,
		.has_via = part->via.function || part->via.file || part->via.module,
		.caller_count = part->caller_count,
	};

	memcpy(site.callers, part->callers, sizeof(site.callers));
	return site;
}

const char *budget_part_words(const struct budget_part *part, const char *site, char *ret_text,
			      size_t size)
{
	char plain[POOL_TEXT_MAX * 2];

	if (part->function || part->file)
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
	struct site site;
	size_t at = 0;

	for (size_t i = 0; i < max && budget_next_part(result, verdict, &at, &part); i++) {
		site = budget_part_site(&part);
		site_rows_add(ret_rows, &site);
	}
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

static void budget_put_line(uint32_t line, struct emit *json)
{
	if (line)
		emit_u64(json, "line", line);
	else
		emit_null(json, "line");
}

/* A frame of a part; null = none. */
static void budget_put_frame(const char *key, const struct frame *frame, struct emit *json)
{
	if (!frame->function && !frame->file && !frame->module) {
		emit_null(json, key);
		return;
	}
	emit_open_object(json, key);
	emit_string(json, "function", frame->function);
	emit_string(json, "file", frame->file);
	budget_put_line(frame->line, json);
	emit_string(json, "module", frame->module);
	emit_close_object(json);
}

/* @has_calls: for a report, which is compared with limits again. */
static void budget_put_part(const struct budget_part *part, bool has_calls, struct emit *json)
{
	emit_open_object(json, NULL);
	emit_string(json, "function", part->function);
	emit_string(json, "file", part->file);
	budget_put_line(part->line, json);
	budget_put_frame("user", &part->user, json);
	budget_put_frame("via", &part->via, json);
	emit_open_array(json, "callers");
	for (unsigned int i = 0; i < part->caller_count; i++)
		budget_put_frame(NULL, &part->callers[i], json);
	emit_close_array(json);
	emit_string(json, "name", part->name);
	emit_string(json, "phase", part->phase);
	if (has_calls)
		emit_string(json, "calls", part->calls);
	emit_u64(json, "bytes", part->bytes);
	emit_close_object(json);
}

void budget_put_parts(const struct budget_summary *summary, uint32_t device, uint32_t type,
		      struct emit *json)
{
	emit_open_array(json, "parts");
	for (size_t i = 0; i < summary->count; i++) {
		const struct budget_moment *moment = &summary->moments[i];

		if (!moment->is_peak || moment->device != device || moment->type != type)
			continue;
		for (size_t k = 0; k < moment->part_count; k++)
			budget_put_part(&moment->parts[k], true, json);
	}
	emit_close_array(json);
}

static void budget_put_json_sites(const struct budget_result *result,
				  const struct budget_verdict *verdict, struct emit *json)
{
	struct budget_part part;
	size_t at = 0;

	emit_open_array(json, "sites");
	while (budget_next_part(result, verdict, &at, &part))
		budget_put_part(&part, false, json);
	emit_close_array(json);
}

static void budget_put_json_near(const struct budget_result *result,
				 const struct budget_verdict *verdict, struct emit *json)
{
	struct budget_near near = {.count = 0};

	if (verdict->is_unmatched)
		near = budget_near(verdict->limit, &result->summary);
	emit_open_array(json, "near");
	for (size_t i = 0; near.is_near && i < near.count; i++)
		emit_string(json, NULL, near.names[i]);
	emit_close_array(json);
}

static void budget_put_json_one(const struct budget_result *result,
				const struct budget_verdict *verdict, struct emit *json)
{
	const struct budget_moment *moment = verdict->moment, *parts;

	emit_open_object(json, NULL);
	emit_string(json, "limit", verdict->limit->key);
	emit_u64(json, "bytes", verdict->limit->bytes);
	emit_bool(json, "over", verdict->is_over);
	emit_bool(json, "optional", verdict->limit->is_optional);
	emit_bool(json, "matched", !verdict->is_unmatched);
	budget_put_json_near(result, verdict, json);
	if (moment) {
		parts = budget_summary_parts_of(&result->summary, moment);
		emit_open_object(json, "held");
		emit_u64(json, "bytes", verdict->bytes);
		emit_bool(json, "exact", verdict->is_exact);
		if (moment->pid)
			emit_u64(json, "pid", moment->pid);
		else
			emit_null(json, "pid");
		emit_string(json, "comm", moment->comm);
		emit_u64(json, "device", moment->device);
		emit_string(json, "type", types_name(moment->type));
		emit_string(json, "sites_at", !parts ? NULL : parts->is_peak ? "peak" : "end");
		budget_put_json_sites(result, verdict, json);
		emit_close_object(json);
	} else {
		emit_null(json, "held");
	}
	emit_close_object(json);
}

void budget_put_json(const struct budget_result *result, struct emit *json)
{
	emit_open_array(json, "limits");
	for (size_t i = 0; i < result->budget.count; i++)
		budget_put_json_one(result, &result->verdicts[i], json);
	emit_close_array(json);
}
