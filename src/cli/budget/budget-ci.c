/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What became of limits, for CI systems. Names come from other processes: they are escaped for terminals
 * first, so no text has a line break, and then for the format.
 */

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/budget/budget-output.h"
#include "cli/budget/budget-words.h"

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
	char text[BUDGET_PART_SHOWN], number[TEXT_NUMBER_SIZE];
	const struct budget_part *part;
	size_t at = 0;

	if (!budget_is_then(result, verdict))
		(void)fputs("\nat its end it held", out);
	while (budget_next_part(result, verdict, &at, &part)) {
		fprintf(out, "\n%s  ", text_size(part->bytes, number));
		budget_put_xml(budget_part_words(part, text, sizeof(text)), out);
	}
}

static void budget_put_junit_case(const struct budget_result *result,
				  const struct budget_verdict *verdict, FILE *out)
{
	char text[BUDGET_WORDS], key[BUDGET_KEY_SHOWN];

	(void)text_escape(verdict->limit->key, key, sizeof(key));
	(void)fputs("    <testcase classname=\"ttmem.limits\" name=\"", out);
	budget_put_xml(key, out);
	(void)fputs("\">", out);
	(void)budget_words(verdict, text, sizeof(text));
	if (!result->summary.is_tracked) {
		(void)fputs("<error message=\"" BUDGET_UNTRACKED "\"/>", out);
	} else if (verdict->is_over) {
		(void)fputs("<failure message=\"", out);
		budget_put_xml(text, out);
		(void)fputs("\">", out);
		budget_put_xml(text, out);
		budget_put_junit_parts(result, verdict, out);
		(void)fputs("</failure>", out);
	} else if (!verdict->moment) {
		(void)fputs("<skipped message=\"", out);
		budget_put_xml(text, out);
		(void)fputs("\"/>", out);
	}
	(void)fputs("</testcase>\n", out);
}

void budget_put_junit(const void *context, FILE *out)
{
	const struct budget_result *result = context;
	size_t count = result->budget.count, skipped = 0;
	bool is_tracked = result->summary.is_tracked;

	for (size_t i = 0; i < count; i++)
		skipped += is_tracked && !result->verdicts[i].moment;
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
		"  <testsuite name=\"ttmem\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"%zu\">\n",
		count, result->over, is_tracked ? 0 : count, skipped);
	for (size_t i = 0; i < count; i++)
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

/* The largest call site that has a file. */
static void budget_put_place(const struct budget_result *result,
			     const struct budget_verdict *verdict, FILE *out)
{
	char path[TEXT_ESCAPE_SIZE(POOL_TEXT_MAX)];
	const struct budget_part *part;
	size_t at = 0;

	while (budget_next_part(result, verdict, &at, &part)) {
		if (!part->file)
			continue;
		(void)text_escape(budget_path(part->file), path, sizeof(path));
		(void)fputs("file=", out);
		budget_put_escaped(path, true, out);
		if (part->line)
			fprintf(out, ",line=%u", part->line);
		(void)fputc(',', out);
		return;
	}
}

void budget_put_github(const struct budget_result *result, FILE *out)
{
	char text[BUDGET_WORDS];

	if (!result->summary.is_tracked)
		(void)fputs("::error title=ttmem::" BUDGET_UNTRACKED "\n", out);
	for (size_t i = 0; i < result->budget.count; i++) {
		const struct budget_verdict *verdict = &result->verdicts[i];

		if (!verdict->is_over)
			continue;
		(void)fputs("::error ", out);
		budget_put_place(result, verdict, out);
		(void)fputs("title=ttmem::", out);
		budget_put_escaped(budget_words(verdict, text, sizeof(text)), false, out);
		(void)fputc('\n', out);
	}
}
