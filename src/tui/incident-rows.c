/* SPDX-License-Identifier: Apache-2.0 */

/* Rows for leaks and incidents. */

#include "tui/incident-rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/incidents.h"
#include "base/append.h"
#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "tui/stack-lines.h"

#define INCIDENT_ROWS_LINE_SIZE 1024

struct incident_rows *incident_rows_new(void)
{
	return calloc(1, sizeof(struct incident_rows));
}

struct incident_rows *incident_rows_free(struct incident_rows *incident_rows)
{
	if (!incident_rows)
		return NULL;
	for (size_t i = 0; i < incident_rows->count; i++)
		free(incident_rows->rows[i].lines);
	free(incident_rows->rows);
	pool_deinit(&incident_rows->texts);
	free(incident_rows);
	return NULL;
}

static const char *incident_rows_text(struct incident_rows *incident_rows, const char *text)
{
	return text ? pool_text(&incident_rows->texts, text, strlen(text)) : NULL;
}

struct incident_rows_row *incident_rows_add(struct incident_rows *incident_rows,
					    const struct incident_rows_row *row)
{
	struct incident_rows_row *rows;

	if (incident_rows->count >= INCIDENT_ROWS_ROWS_MAX) {
		incident_rows->is_cut = true;
		return NULL;
	}
	rows = array_grow(incident_rows->rows, &incident_rows->capacity, incident_rows->count + 1,
			  sizeof(*rows));
	if (!rows)
		return NULL;
	incident_rows->rows = rows;
	rows += incident_rows->count++;
	*rows = *row;
	rows->kind = incident_rows_text(incident_rows, row->kind ? row->kind : "incident");
	rows->comm = incident_rows_text(incident_rows, row->comm ? row->comm : "?");
	rows->type = incident_rows_text(incident_rows, row->type);
	rows->what = incident_rows_text(incident_rows, row->what);
	rows->lines = NULL;
	rows->line_count = rows->line_capacity = 0;
	return rows;
}

int incident_rows_line(struct incident_rows *incident_rows, struct incident_rows_row *row,
		       const char *format, ...)
{
	char text[INCIDENT_ROWS_LINE_SIZE];
	const char **lines, *line;
	va_list arguments;

	if (row->line_count >= INCIDENT_ROWS_LINES_MAX)
		return 0;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line = incident_rows_text(incident_rows, text);
	lines = array_grow(row->lines, &row->line_capacity, row->line_count + 1, sizeof(*lines));
	if (!lines || !line)
		return -ENOMEM;
	row->lines = lines;
	lines[row->line_count++] = line;
	return 0;
}

int incident_rows_stack(struct incident_rows *incident_rows, struct incident_rows_row *row,
			const struct call_stack *frames)
{
	CLEANUP(pool_deinit) struct pool texts = POOL_NULL;
	const struct stack *stack = call_stack_keep(frames, &texts);
	size_t count = stack_lines_count(stack);
	char text[INCIDENT_ROWS_LINE_SIZE - 8];
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		stack_lines_text(stack, i, text, sizeof(text));
		r = incident_rows_line(incident_rows, row, "    at %s", text);
	}
	return r;
}

static int incident_rows_party(struct incident_rows *incident_rows, struct incident_rows_row *row,
			       const char *when, const struct incident_party *party,
			       uint64_t now_ns)
{
	char age[TEXT_NUMBER_SIZE], size[TEXT_NUMBER_SIZE];
	int r;

	if (!party)
		return 0;
	r = incident_rows_line(
		incident_rows, row, "%s%s ago by thread %" PRIu32 "%s%s%s%s%s%s", when,
		text_duration(bits_max(now_ns, party->time_ns) - party->time_ns, age),
		party->thread, party->size ? ", " : "",
		party->size ? text_size(party->size, size) : "", party->name ? ", " : "",
		party->name ? party->name : "", party->phase ? ", in " : "",
		party->phase ? party->phase : "");
	return r ? r : incident_rows_stack(incident_rows, row, &party->stack);
}

/* A row has only the newest device. */
static int incident_rows_devices(struct incident_rows *incident_rows, struct incident_rows_row *row,
				 const struct incident_row *incident)
{
	char text[INCIDENT_ROWS_LINE_SIZE - 16];
	struct append list = {text, sizeof(text), 0};

	if (incident->device_count < 2)
		return 0;
	for (size_t i = 0; i < incident->device_count; i++)
		append(&list, "%s%" PRIu64, i ? "," : "", incident->devices[i]);
	return incident_rows_line(incident_rows, row, "devices: %s", text);
}

static int incident_rows_holders(struct incident_rows *incident_rows, struct incident_rows_row *row,
				 const struct incident_row *incident)
{
	char number[TEXT_NUMBER_SIZE];
	int r = 0;

	for (size_t i = 0; r == 0 && i < incident->holder_count; i++) {
		const struct incident_holder *holder = &incident->holders[i];
		const char *type = types_name(holder->type);

		r = incident_rows_line(incident_rows, row, "held by %s (%" PRIu32 "): %s of %s",
				       holder->comm ? holder->comm : "?", holder->pid,
				       text_size(holder->used, number), type ? type : "?");
	}
	return r;
}

/* What happened first, what happened then, and who held the memory. */
static int incident_rows_lines(struct incident_rows *incident_rows, struct incident_rows_row *row,
			       const struct incident_row *incident, uint64_t now_ns)
{
	char number[TEXT_NUMBER_SIZE];
	int r = 0;

	if (incident->has_largest_free)
		r = incident_rows_line(incident_rows, row, "largest free block: %s",
				       text_size(incident->largest_free, number));
	if (r == 0)
		r = incident_rows_devices(incident_rows, row, incident);
	if (r == 0)
		r = incident_rows_party(incident_rows, row, "first ", incident->first, now_ns);
	if (r == 0)
		r = incident_rows_party(incident_rows, row, incident->first ? "then  " : "",
					incident->second, now_ns);
	return r ? r : incident_rows_holders(incident_rows, row, incident);
}

int incident_rows_incident(struct incident_rows *incident_rows, const struct incident_row *incident,
			   uint64_t now_ns)
{
	static const struct incident_party none;
	const struct incident_party *first = incident->first ? incident->first : &none;
	const struct incident_party *second = incident->second ? incident->second : &none;
	struct incident_rows_row facts = {
		.time_ns = incident->last_ns ? incident->last_ns : incident->time_ns,
		.kind = incident->kind,
		.pid = incident->pid,
		.comm = incident->comm,
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
	struct incident_rows_row *row = incident_rows_add(incident_rows, &facts);

	if (!row)
		return incident_rows->is_cut ? 0 : -ENOMEM;
	return incident_rows_lines(incident_rows, row, incident, now_ns);
}

int incident_rows_from_snapshot(struct incident_rows *incident_rows,
				const struct snapshot *snapshot)
{
	struct incident_room room;
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->incident_count; i++) {
		const struct incident_row row =
			incident_row_of(snapshot, &snapshot->incidents[i], &room);

		r = incident_rows_incident(incident_rows, &row, snapshot->time_ns);
	}
	return r;
}
