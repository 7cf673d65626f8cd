/* SPDX-License-Identifier: Apache-2.0 */

/* Rows for leaks and incidents. */

#include "tui/incident-rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/stack-lines.h"

#define PAST_LINE_SIZE 1024

struct past *past_new(void)
{
	return calloc(1, sizeof(struct past));
}

struct past *past_free(struct past *past)
{
	if (!past)
		return NULL;
	for (size_t i = 0; i < past->count; i++)
		free(past->rows[i].lines);
	free(past->rows);
	pool_deinit(&past->texts);
	free(past);
	return NULL;
}

static const char *past_text(struct past *past, const char *text)
{
	return text ? pool_text(&past->texts, text, strlen(text)) : NULL;
}

struct past_row *past_add(struct past *past, const struct past_row *row)
{
	struct past_row *rows;

	if (past->count >= PAST_ROWS_MAX) {
		past->is_cut = true;
		return NULL;
	}
	rows = array_grow(past->rows, &past->capacity, past->count + 1, sizeof(*rows));
	if (!rows)
		return NULL;
	past->rows = rows;
	rows += past->count++;
	*rows = *row;
	rows->kind = past_text(past, row->kind ? row->kind : "incident");
	rows->comm = past_text(past, row->comm ? row->comm : "?");
	rows->type = past_text(past, row->type);
	rows->what = past_text(past, row->what);
	rows->lines = NULL;
	rows->line_count = rows->line_capacity = 0;
	return rows;
}

int past_line(struct past *past, struct past_row *row, const char *format, ...)
{
	char text[PAST_LINE_SIZE];
	const char **lines, *line;
	va_list arguments;

	if (row->line_count >= PAST_LINES_MAX)
		return 0;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line = past_text(past, text);
	lines = array_grow(row->lines, &row->line_capacity, row->line_count + 1, sizeof(*lines));
	if (!lines || !line)
		return -ENOMEM;
	row->lines = lines;
	lines[row->line_count++] = line;
	return 0;
}

int past_stack(struct past *past, struct past_row *row, const char *stack)
{
	size_t count = trace_count(stack);
	char text[PAST_LINE_SIZE - 8];
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		trace_text(stack, i, text, sizeof(text));
		r = past_line(past, row, "    at %s", text);
	}
	return r;
}

static int past_party(struct past *past, struct past_row *row, const char *when,
		      const struct snapshot_party *party, uint64_t now_ns)
{
	uint64_t ago = now_ns > party->time_ns ? now_ns - party->time_ns : 0;
	char age[TEXT_NUMBER_SIZE], size[TEXT_NUMBER_SIZE];
	int r;

	if (!party->known)
		return 0;
	r = past_line(past, row, "%s%s ago by thread %" PRIu32 "%s%s%s%s%s%s", when,
		      text_duration(ago, age), party->thread, party->size ? ", " : "",
		      party->size ? text_size(party->size, size) : "", party->name ? ", " : "",
		      party->name ? party->name : "", party->phase ? ", in " : "",
		      party->phase ? party->phase : "");
	return r ? r : past_stack(past, row, party->stack);
}

static int past_incident(struct past *past, const struct snapshot *snapshot,
			 const struct snapshot_incident *incident)
{
	const struct snapshot_process *process = &snapshot->processes[incident->process];
	const struct snapshot_party *first = &incident->first, *second = &incident->second;
	struct past_row facts = {
		.time_ns = incident->last_ns ? incident->last_ns : incident->time_ns,
		.kind = incident->kind,
		.pid = process->pid,
		.comm = process->comm,
		.has_device = true,
		.device = incident->device,
		.type = types_name(incident->type),
		.has_address = incident->has_address,
		.address = incident->address,
		.bytes = incident->size,
		.count = incident->count,
		.what = first->name     ? first->name
			: second->name  ? second->name
			: second->phase ? second->phase
					: first->phase,
	};
	struct past_row *row = past_add(past, &facts);
	char number[TEXT_NUMBER_SIZE];
	int r = 0;

	if (!row)
		return past->is_cut ? 0 : -ENOMEM;
	if (incident->largest_free != UINT64_MAX)
		r = past_line(past, row, "largest free block: %s",
			      text_size(incident->largest_free, number));
	if (r == 0)
		r = past_party(past, row, "first ", first, snapshot->time_ns);
	if (r == 0)
		r = past_party(past, row, first->known ? "then  " : "", second, snapshot->time_ns);
	return r;
}

int past_from_snapshot(struct past *past, const struct snapshot *snapshot)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->incident_count; i++)
		r = past_incident(past, snapshot, &snapshot->incidents[i]);
	return r;
}
