/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What became of limits, for CI systems. Names come from other processes: they are escaped for terminals
 * first, so no text has a line break, and then for the format.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/budget/budget-output.h"
#include "cli/budget/budget-words.h"
#include "model/sites/site-rows.h"

#define BUDGET_UNTRACKED "nothing was tracked, so nothing was checked"

/* For attributes and text of XML. */
static void budget_put_xml(const char *text, FILE *out)
{
	for (; *text; text++) {
		if (strchr("&<>\"'", *text))
			fprintf(out, "&#%d;", *text);
		else
			(void)fputc(*text, out);
	}
}

static void budget_put_junit_parts(const struct budget_result *result,
				   const struct budget_verdict *verdict, FILE *out)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	char text[BUDGET_PART_SHOWN], number[TEXT_NUMBER_SIZE];
	struct budget_part part;
	size_t at = 0;

	budget_find_rows(result, verdict, SIZE_MAX, &rows);
	if (!budget_is_then(result, verdict))
		(void)fputs("\nat its end it held", out);
	for (size_t i = 0; budget_next_part(result, verdict, &at, &part); i++) {
		fprintf(out, "\n%s  ", text_size(part.bytes, number));
		budget_put_xml(
			budget_part_words(&part, site_rows_text(&rows, i), text, sizeof(text)),
			out);
	}
}

/* Why a check cannot pass although it found nothing; NULL = it can. */
static const char *budget_unchecked(const struct budget_result *result)
{
	return result->summary.is_tracked ? result->summary.gave_up : BUDGET_UNTRACKED;
}

static void budget_put_junit_error(const struct budget_result *result, FILE *out)
{
	(void)fputs("<error message=\"", out);
	if (result->summary.is_tracked)
		(void)fputs("tracking gave up: ", out);
	budget_put_xml(budget_unchecked(result), out);
	(void)fputs("\"/>", out);
}

static void budget_put_junit_case(const struct budget_result *result,
				  const struct budget_verdict *verdict, FILE *out)
{
	char text[BUDGET_WORDS], key[BUDGET_KEY_SHOWN];

	(void)text_escape(verdict->limit->key, key, sizeof(key));
	(void)fputs("    <testcase classname=\"ttmem.limits\" name=\"", out);
	budget_put_xml(key, out);
	(void)fputs("\">", out);
	(void)budget_words(result, verdict, text, sizeof(text));
	if (!verdict->is_over && budget_unchecked(result)) {
		budget_put_junit_error(result, out);
	} else if (verdict->is_over || verdict->is_unmatched) {
		(void)fputs("<failure message=\"", out);
		budget_put_xml(text, out);
		(void)fputs("\">", out);
		budget_put_xml(text, out);
		if (verdict->is_over)
			budget_put_junit_parts(result, verdict, out);
		(void)fputs("</failure>", out);
	} else if (!verdict->moment) {
		(void)fputs("<skipped message=\"", out);
		budget_put_xml(text, out);
		(void)fputs("\"/>", out);
	}
	(void)fputs("</testcase>\n", out);
}

static void budget_put_junit_leaks(const struct budget_result *result, FILE *out)
{
	(void)fputs("    <testcase classname=\"ttmem\" name=\"leaks\">", out);
	if (!*result->leaks && budget_unchecked(result)) {
		budget_put_junit_error(result, out);
	} else if (*result->leaks) {
		(void)fputs("<failure message=\"device memory was leaked\">", out);
		budget_put_xml(result->leaks, out);
		(void)fputs("</failure>", out);
	}
	(void)fputs("</testcase>\n", out);
}

void budget_put_junit(const void *context, FILE *out)
{
	const struct budget_result *result = context;
	size_t limits = result->budget.count, count = limits + (result->leaks ? 1 : 0);
	size_t skipped = 0, leaked = result->leaks && *result->leaks ? 1 : 0;
	bool is_checked = !budget_unchecked(result);

	for (size_t i = 0; i < limits; i++)
		skipped += is_checked && !result->verdicts[i].moment &&
			   !result->verdicts[i].is_unmatched;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		"  <testsuite name=\"ttmem\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"%zu\">\n",
		count, result->failed + leaked, is_checked ? 0 : count - result->failed - leaked,
		skipped);
	if (result->leaks)
		budget_put_junit_leaks(result, out);
	for (size_t i = 0; i < limits; i++)
		budget_put_junit_case(result, &result->verdicts[i], out);
	(void)fputs("  </testsuite>\n</testsuites>\n", out);
}

/* GitHub's own escapes; in a property also its separators. */
static void budget_put_escaped(const char *text, bool is_property, FILE *out)
{
	for (; *text; text++) {
		if (strchr("%\r\n", *text) || (is_property && strchr(":,", *text)))
			fprintf(out, "%%%02X", (unsigned int)*text);
		else
			(void)fputc(*text, out);
	}
}

/* GitHub knows files by their path in the repository, which is checked out there. */
static const char *budget_path(const char *file)
{
	const char *folder = secure_getenv("GITHUB_WORKSPACE");
	size_t length = folder ? strlen(folder) : 0;

	while (length > 0 && folder[length - 1] == '/')
		length--;
	if (length > 0 && strncmp(file, folder, length) == 0 && file[length] == '/')
		return file + length + 1;
	return file;
}

void budget_put_annotation(const char *file, uint32_t line, const char *text, FILE *out)
{
	char path[TEXT_ESCAPE_SIZE(POOL_TEXT_MAX)];

	(void)fputs("::error ", out);
	if (file) {
		(void)text_escape(budget_path(file), path, sizeof(path));
		(void)fputs("file=", out);
		budget_put_escaped(path, true, out);
		if (line)
			fprintf(out, ",line=%" PRIu32, line);
		(void)fputc(',', out);
	}
	(void)fputs("title=ttmem::", out);
	budget_put_escaped(text, false, out);
	(void)fputc('\n', out);
}

/* The user's line; its caller where others call the same one. */
static struct frame budget_place(const struct budget_result *result,
				 const struct budget_verdict *verdict,
				 const struct budget_part *part)
{
	const struct budget_moment *moment =
		budget_summary_parts_of(&result->summary, verdict->moment);

	for (size_t i = 0;
	     part->site.caller_count && part->site.callers[0].file && i < moment->part_count; i++) {
		const struct budget_part *other = &moment->parts[i];

		if (other->site.user.file == part->site.user.file &&
		    other->site.user.line == part->site.user.line &&
		    (!other->site.caller_count ||
		     other->site.callers[0].file != part->site.callers[0].file ||
		     other->site.callers[0].line != part->site.callers[0].line))
			return part->site.callers[0];
	}
	return part->site.user.file ? part->site.user : part->site.frame;
}

void budget_put_github(const struct budget_result *result, FILE *out)
{
	char text[BUDGET_WORDS];

	if (budget_unchecked(result))
		budget_put_annotation(NULL, 0, budget_unchecked(result), out);
	for (size_t i = 0; i < result->budget.count; i++) {
		const struct budget_verdict *verdict = &result->verdicts[i];
		struct budget_part part;
		size_t at = 0;
		struct frame place;
		bool has_file = false;

		if (!verdict->is_over && !verdict->is_unmatched)
			continue;
		/* The largest call site that has a file. */
		while (!has_file && budget_next_part(result, verdict, &at, &part))
			has_file = part.site.frame.file;
		place = has_file ? budget_place(result, verdict, &part)
				 : (struct frame){.file = NULL};
		budget_put_annotation(place.file, place.line,
				      budget_words(result, verdict, text, sizeof(text)), out);
	}
}
