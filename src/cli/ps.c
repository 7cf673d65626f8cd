/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem ps: what each process holds, per device and type, with all counters. */

#include <inttypes.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/command-lines.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "model/amount.h"
#include "model/json/document.h"
#include "model/snapshot.h"
#include "model/types.h"

/* What is there from which width on: the sums of the widths before it. */
static const struct table_column ps_columns[] = {
	{"PID", 8, true, false},
	{"USER", 10, false, true, .least = 92, .most = 16},
	{"COMMAND", 15, false, true, .most = 24},
	{"DEV", 4, true, false},
	{"TYPE", 13, false, false},
	{"USED", 10, true, false},
	{"BUFFERS", 8, true, false},
	{"PEAK", 10, true, false},
	{"ALLOCS", 10, true, false, .least = 129},
	{"FREES", 10, true, false, .least = 129},
	{"LAST", 11, false, false, .least = 105},
};

static void ps_who(struct table *table, const struct snapshot_process *process)
{
	table_format(table, "%" PRIu32, process->pid);
	table_text(table, process->user);
	table_format(table, "%s%s", process->alive ? "" : "(ended) ", process->comm);
}

static void ps_memory(struct table *table, const struct snapshot *snapshot,
		      const struct snapshot_part *part, uint32_t type)
{
	const struct snapshot_memory *memory = &part->memory[type];
	const char *bound = memory->bound == SNAPSHOT_AT_LEAST  ? ">"
			    : memory->bound == SNAPSHOT_AT_MOST ? "<"
								: "";
	char number[TEXT_NUMBER_SIZE];

	table_format(table, "%" PRIu32 "%s", part->device, part->before_reset ? " reset" : "");
	table_text(table, types_name(type));
	table_format(table, "%s%s", bound, text_size(memory->used, number));
	table_format(table, "%" PRIu64, memory->buffers);
	table_text(table, memory->peak_is_unknown ? "-" : text_size(memory->peak, number));
	table_format(table, "%" PRIu64, memory->allocs);
	table_format(table, "%" PRIu64, memory->frees);
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
	while (table->at)
		table_text(table, "-");
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

static void ps_print(const struct snapshot *snapshot)
{
	struct table table;

	table_begin_within(&table, stdout, ps_columns, ARRAY_SIZE(ps_columns), output_width());
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		bool idle = true;

		if (process->untracked)
			continue; /* nothing is known about it */
		for (size_t k = 0; k < process->part_count; k++) {
			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				if (ps_is_idle(&process->parts[k].memory[type]))
					continue;
				ps_who(&table, process);
				ps_memory(&table, snapshot, &process->parts[k], type);
				idle = false;
			}
			if (ps_driver(&table, process, &process->parts[k]))
				idle = false;
		}
		if (!idle)
			continue;
		ps_who(&table, process); /* its book is empty */
		while (table.at)
			table_text(&table, "-");
	}
	session_print_notes(snapshot);
}

static int ps_run(int argc, char **argv)
{
	CLEANUP(session_cleanup_snapshot) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	CLEANUP(command_lines_deinit) struct command_lines lines = {0};
	const struct snapshot_request request = {0};
	struct options_from from = {0};
	bool json = false;
	const struct options_item items[] = {
		OPTIONS_FROM(&from),
		{0, "json", NULL, "as JSON, with all counters", &json, NULL},
	};
	const struct options options = {
		.command = "ps",
		.shows_sizes = true,
		.summary = "What each process holds, per device and type.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};
	struct emit writer = EMIT_INIT(stdout);
	int r = options_parse_only(&options, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	r = session_start(&session, "ps", &from, NULL);
	if (r != 0)
		return r;
	r = session_take(session, &request, &snapshot);
	if (r != 0)
		return output_fail("ps", "cannot look at processes", r);
	if (json) {
		document_ps(&writer, snapshot, command_lines_init(&lines, session));
	} else {
		session_print_moment(session);
		ps_print(snapshot);
	}
	return output_finish();
}

const struct command ps_command = {
	.name = "ps",
	.summary = "what each process holds, per device and type",
	.run = ps_run,
};
