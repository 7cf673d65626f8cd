/* SPDX-License-Identifier: Apache-2.0 */

/* The summary of a run from its report, ttmem.run/1. */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/budget/budget-summary.h"
#include "model/types.h"

static uint64_t budget_document_number(const json_t *row, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(row, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *budget_document_text(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

/* Fills in device and type of a row. False: it has none. */
static bool budget_document_place(const json_t *row, struct budget_moment *moment)
{
	const char *type = budget_document_text(row, "type");

	moment->device = (uint32_t)budget_document_number(row, "device");
	return type && types_parse(type, &moment->type) == 0;
}

/* @place: what has function, file and line; @row: what has name and phase. */
static int budget_document_part(struct budget_summary *summary, size_t moment, const json_t *place,
				const json_t *row, uint64_t bytes)
{
	const struct budget_part part = {
		.moment = moment,
		.function = budget_document_text(place, "function"),
		.file = budget_document_text(place, "file"),
		.line = (uint32_t)budget_document_number(place, "line"),
		.name = budget_document_text(row, "name"),
		.phase = budget_document_text(row, "phase"),
		.bytes = bytes,
	};

	return budget_summary_add(summary, &part);
}

/* The process that held the most, and what was live in it then. Older reports have only the bytes. */
static int budget_document_peak(struct budget_summary *summary, const json_t *row)
{
	const json_t *top = json_object_get(row, "at_peak"), *parts = json_object_get(row, "parts");
	const char *bound = budget_document_text(top, "bound");
	struct budget_moment peak = {
		.pid = (uint32_t)budget_document_number(top, "pid"),
		.comm = budget_document_text(top, "comm"),
		.is_peak = true,
		.is_exact = bound ? strcmp(bound, "exact") == 0
				  : json_is_true(json_object_get(row, "exact")),
		.bytes = budget_document_number(json_is_object(top) ? top : row, "bytes"),
	};
	size_t index;
	int r;

	if (!budget_document_place(row, &peak))
		return 0;
	r = budget_summary_begin(summary, &peak, &index);
	for (size_t i = 0; r == 0 && i < json_array_size(parts); i++) {
		const json_t *part = json_array_get(parts, i);

		r = budget_document_part(summary, index, part, part,
					 budget_document_number(part, "bytes"));
	}
	return r;
}

static int budget_document_buffers(struct budget_summary *summary, const json_t *buffers,
				   const struct budget_moment *process)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < json_array_size(buffers); i++) {
		const json_t *row = json_array_get(buffers, i);
		struct budget_moment end = *process;
		size_t index;

		if (!budget_document_place(row, &end))
			continue;
		r = budget_summary_end_of(summary, &end, &index);
		if (r == 0)
			r = budget_document_part(summary, index, json_object_get(row, "site"), row,
						 budget_document_number(row, "size"));
	}
	return r;
}

static int budget_document_fill(struct budget_summary *summary, const json_t *document)
{
	const json_t *peaks = json_object_get(document, "peaks"),
		     *processes = json_object_get(document, "processes");
	int r = 0;

	summary->is_tracked = json_is_true(json_object_get(document, "tracked"));
	summary->is_incomplete = budget_document_number(document, "refused") > 0;
	for (size_t i = 0; r == 0 && i < json_array_size(peaks); i++)
		r = budget_document_peak(summary, json_array_get(peaks, i));
	for (size_t i = 0; r == 0 && i < json_array_size(processes); i++) {
		const json_t *row = json_array_get(processes, i);
		const struct budget_moment process = {
			.pid = (uint32_t)budget_document_number(row, "pid"),
			.comm = budget_document_text(row, "comm"),
		};

		r = budget_document_buffers(summary, json_object_get(row, "buffers"), &process);
	}
	budget_summary_finish(summary);
	return r;
}

int budget_summary_load(const char *path, struct budget_summary *ret_summary, char *ret_error,
			size_t size)
{
	struct budget_summary summary = BUDGET_SUMMARY_NULL;
	json_error_t error;
	char shown[TEXT_ESCAPE_SIZE(JSON_ERROR_TEXT_LENGTH)];
	json_t *document = json_load_file(path, 0, &error);
	const char *schema = budget_document_text(document, "schema");
	int r;

	if (!document) {
		(void)text_escape(error.text, shown, sizeof(shown)); /* it quotes the file */
		if (error.line > 0)
			(void)snprintf(ret_error, size, "line %d: %s", error.line, shown);
		else
			(void)snprintf(ret_error, size, "cannot be read");
		return -EINVAL;
	}
	if (!schema || strcmp(schema, "ttmem.run/1") != 0) {
		(void)snprintf(ret_error, size, "not a report of `ttmem run --json` (ttmem.run/1)");
		json_decref(document);
		return -EINVAL;
	}
	r = budget_document_fill(&summary, document);
	json_decref(document);
	if (r < 0) {
		(void)snprintf(ret_error, size, "out of memory");
		budget_summary_deinit(&summary);
		return r;
	}
	*ret_summary = summary;
	return 0;
}
