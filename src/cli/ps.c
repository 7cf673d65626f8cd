/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem ps: what each process holds, per device and type, with all counters. */

#include <inttypes.h>
#include <string.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "answers/memory-rows.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/asked-for.h"
#include "cli/common/command-lines.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "model/amount.h"
#include "model/filter.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "model/types.h"

struct ps {
	struct query query;
	struct options_from from;
	bool json;
	bool csv;
};

static const struct table_column ps_columns[] = {
	{"PID", true},
	{"USER", .cut = true, .order = 4},
	{"COMMAND", .cut = true, .least = 15},
	{"DEV", true},
	{"TYPE"},
	{"USED", true},
	{"BUFFERS", true, .order = 5},
	{"PEAK", true, .order = 6},
	{"ALLOCS", true, .order = 2},
	{"FREES", true, .order = 1},
	{"LAST", .order = 3},
};

static void ps_who(struct table *table, const struct snapshot_process *process)
{
	table_format(table, "%" PRIu32, process->id.pid);
	table_text(table, process->user);
	table_format(table, "%s%s%s", process->alive ? "" : "(ended) ",
		     process->gave_up ? "(gave up) " : "", process->comm);
}

#define PS_COUNTERS 4u /* buffers, peak, allocs, frees */

static void ps_memory(struct table *table, const struct snapshot *snapshot, bool has_book,
		      const struct snapshot_part *part, uint32_t type)
{
	const struct snapshot_memory *memory = &part->memory[type];
	/* The signs of ttmem smi. */
	const char *least = output_is_utf8() ? "\u2265" : ">",
		   *most = output_is_utf8() ? "\u2264" : "<";
	const char *bound = memory->bound == SNAPSHOT_AT_LEAST  ? least
			    : memory->bound == SNAPSHOT_AT_MOST ? most
								: "";
	char number[TEXT_NUMBER_SIZE];

	table_format(table, "%" PRIu32 "%s", part->device, part->before_reset ? " reset" : "");
	table_text(table, types_name(type));
	table_format(table, "%s%s", bound, text_size(memory->used, number));
	if (!has_book && !memory->buffers) {
		for (unsigned int i = 0; i < PS_COUNTERS; i++)
			table_text(table, "-"); /* a region of tt-metal has sums only */
	} else {
		table_format(table, "%" PRIu64, memory->buffers);
		if (memory->peak_is_unknown)
			table_text(table, "-");
		else
			table_format(table, "%s%s", memory->bound == SNAPSHOT_AT_LEAST ? bound : "",
				     text_size(memory->peak, number));
		table_format(table, "%" PRIu64, memory->allocs);
		table_format(table, "%" PRIu64, memory->frees);
	}
	if (memory->last_ns)
		table_format(table, "%s ago",
			     text_duration(snapshot->time_ns > memory->last_ns
						   ? snapshot->time_ns - memory->last_ns
						   : 0,
					   number));
	else
		table_text(table, "-");
}

/* Columns that the driver knows nothing about. */
static void ps_driver_row(struct table *table, const struct snapshot_process *process,
			  const struct snapshot_part *part, const struct amount_driver_row *row)
{
	char number[TEXT_NUMBER_SIZE];

	ps_who(table, process);
	table_format(table, "%" PRIu32, part->device);
	table_text(table, row->name);
	table_text(table, text_size(row->bytes, number));
	if (row->count)
		table_format(table, "%" PRIu32, row->count);
	table_rest(table, "-");
}

/* What the driver says it keeps for the process; it is in no total. */
static bool ps_driver(struct table *table, const struct snapshot_process *process,
		      const struct snapshot_part *part)
{
	struct amount_driver_row rows[AMOUNT_DRIVER_ROWS];
	size_t count = amount_of_driver(part->driver_memory, rows);

	for (size_t i = 0; i < count; i++)
		ps_driver_row(table, process, part, &rows[i]);
	return count > 0;
}

static bool ps_is_idle(const struct snapshot_memory *memory)
{
	return !(memory->used | memory->allocs | memory->frees | memory->buffers |
		 memory->unknown_frees | memory->double_frees | memory->hooked);
}

/* Whether the row that the process has of a device is wanted. */
static bool ps_wants(const struct ps *ps, const struct snapshot *snapshot,
		     const struct snapshot_part *part)
{
	const struct snapshot_device *row = &snapshot->devices[part->row];

	return filter_wants_device(&ps->query.filter, row->device, row->unique_id);
}

/* Nothing is known about untracked ones. */
static bool ps_wants_process(const struct ps *ps, const struct snapshot_process *process)
{
	return !process->untracked && filter_wants_pid(&ps->query.filter, process->id.pid);
}

static void ps_csv(const struct ps *ps, const struct snapshot *snapshot)
{
	struct fields_view view;

	fields_choose(&view, memory_fields, MEMORY_OF_PROCESS);
	puts(MEMORY_OF_PROCESS);
	for (size_t i = 0; i < snapshot->process_count && !output_is_broken(); i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct memory_row row = {.process = process, .user = process->user};

		for (size_t k = 0; ps_wants_process(ps, process) && k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			row.device = part->device;
			row.uid = part->facts.unique_id;
			for (row.type = 0; row.type < BOOK_TYPES; row.type++) {
				if (ps_wants(ps, snapshot, part) &&
				    !ps_is_idle(&part->memory[row.type]))
					memory_put_csv(stdout, &view, row, &part->memory[row.type]);
			}
		}
	}
}

static void ps_print(const struct ps *ps, const struct snapshot *snapshot)
{
	struct table table;

	table_begin(&table, stdout, ps_columns, ARRAY_SIZE(ps_columns), output_width());
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		bool idle = true;

		if (!ps_wants_process(ps, process))
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			if (!ps_wants(ps, snapshot, &process->parts[k]))
				continue;
			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				if (ps_is_idle(&process->parts[k].memory[type]))
					continue;
				ps_who(&table, process);
				ps_memory(&table, snapshot,
					  strcmp(process->source, "tt-metal") != 0,
					  &process->parts[k], type);
				idle = false;
			}
			if (ps_driver(&table, process, &process->parts[k]))
				idle = false;
		}
		if (!idle || ps->query.filter.device_count)
			continue;
		ps_who(&table, process); /* its book is empty */
		table_rest(&table, "-");
	}
	table_end(&table);
	session_print_notes(snapshot);
}

static void ps_write(const struct ps *ps, struct session *session, const struct snapshot *snapshot)
{
	CLEANUP(command_lines_deinit) struct command_lines lines = {0};
	struct emit writer = EMIT_INIT(stdout);

	if (ps->json) {
		document_ps(&writer, snapshot, &ps->query.filter,
			    command_lines_init(&lines, session));
	} else if (ps->csv) {
		ps_csv(ps, snapshot);
	} else {
		session_print_moment(session);
		ps_print(ps, snapshot);
	}
}

static int ps_parse(struct ps *ps, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "pid", "PID", "only this process"},
		{'d', "device", "DEV|UID", "only on this device; may be given again"},
		OPTIONS_FROM(&ps->from),
		{0, "json", NULL, "as JSON, with all counters", &ps->json, NULL},
		{0, "csv", NULL, "as CSV", &ps->csv, NULL},
	};
	const struct options options = {
		.command = "ps",
		.shows_sizes = true,
		.summary = "What each process holds, per device and type.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &ps->query,
		.answer = &answers[ANSWERS_PS],
	};
	int r = options_parse_only(&options, argc, argv);

	if (r == 0 && ps->json && ps->csv)
		r = options_mistake("ps", "--json or --csv, not both");
	return r;
}

static int ps_run(int argc, char **argv)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	const struct snapshot_request request = {0};
	struct ps ps = {.json = false};
	struct asked_for asked = {.command = "ps", .filter = &ps.query.filter};
	int r = ps_parse(&ps, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	ps.from.is_state = true;
	r = session_start(&session, "ps", &ps.from, &ps.query.filter);
	if (r != 0)
		return r;
	r = session_take(session, &request, &snapshot);
	if (r != 0)
		return output_fail("ps", "cannot look at processes", r);
	asked.is_json = ps.json;
	asked_for_check(&asked, session, snapshot);
	ps_write(&ps, session, snapshot);
	return asked_for_exit(&asked, output_finish());
}

const struct command ps_command = {
	.name = "ps",
	.summary = "what each process holds, per device and type",
	.run = ps_run,
};
