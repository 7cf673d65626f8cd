/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of processes: one line per device of each, with --details per type. 80 columns hold process,
 * device, memory, source and idle time; more columns hold age and container as well.
 */

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/smi/smi-picture.h"
#include "cli/smi/smi.h"
#include "model/amount.h"
#include "model/snapshot.h"
#include "model/types.h"

/* The source, or what is odd about it, in five letters if there is no room for more. */
static void smi_processes_from(const struct smi_picture *picture, struct table *table,
			       const struct snapshot_process *process,
			       const struct snapshot_part *part)
{
	static const char *const words[][2] = {
		{"socket", "sock"}, {"tt-metal", "metal"}, {"kernel", "kern"}};
	const char *source = part->is_region_counted ? "tt-metal"
			     : process->source       ? process->source
						     : "book";

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!picture->is_wide && strcmp(source, words[i][0]) == 0)
			source = words[i][1];
	}
	if (process->unproven)
		source = "claim";
	else if (process->stale)
		source = "stale";
	else if (!process->alive)
		source = "ended";
	else if (process->untracked)
		source = "open";
	else if (process->gave_up)
		source = picture->is_wide ? "gave up" : "lost"; /* a note says why */
	else if (part->before_reset)
		source = "reset"; /* a note says what that means */
	table_format(table, "%s%s", source, part->differs ? "!" : "");
}

static void smi_processes_time(const struct smi_picture *picture, struct table *table,
			       uint64_t since)
{
	uint64_t now = picture->snapshot->time_ns;
	char number[TEXT_NUMBER_SIZE];

	table_text(table, since ? text_duration(now > since ? now - since : 0, number) : "-");
}

static void smi_processes_left(const struct smi_picture *picture, struct table *table,
			       const struct snapshot_process *process,
			       const struct snapshot_part *part)
{
	const struct snapshot_device *row = &picture->snapshot->devices[part->row];

	table_format(table, "%" PRIu32, process->id.pid);
	table_text(table, process->user);
	table_text(table, process->comm);
	table_format(table, "%" PRIu32 "%s", row->device, row->remote ? "R" : "");
}

/* The columns after the amounts. @is_counted: whether it is known how many buffers there are. */
static void smi_processes_right(const struct smi_picture *picture, struct table *table,
				const struct snapshot_process *process,
				const struct snapshot_part *part, bool is_counted, uint64_t buffers)
{
	if (is_counted)
		table_format(table, "%" PRIu64, buffers);
	else
		table_text(table, "-");
	smi_processes_from(picture, table, process, part);
	if (!picture->style->details) {
		smi_processes_time(picture, table, process->untracked ? 0 : process->last_ns);
		smi_processes_time(picture, table, process->start_ns);
	}
	table_text(table, process->container ? process->container : "");
}

/* Regions do not count buffers. */
static bool smi_processes_counts(const struct snapshot_process *process)
{
	return !process->untracked &&
	       !(process->source && strcmp(process->source, "tt-metal") == 0);
}

static void smi_processes_part(const struct smi_picture *picture, struct table *table,
			       const struct snapshot_process *process,
			       const struct snapshot_part *part)
{
	struct snapshot_memory dram = amount_of_part(part, TYPES_DRAM);
	struct snapshot_memory l1 = amount_of_part(part, TYPES_L1);

	smi_processes_left(picture, table, process, part);
	if (process->untracked) {
		table_span(table, 2, "not tracked");
	} else {
		smi_picture_cell(picture, table, &dram);
		smi_picture_cell(picture, table, &l1);
	}
	smi_processes_right(picture, table, process, part, smi_processes_counts(process),
			    amount_of_part(part, AMOUNT_ALL).buffers);
}

/* What the driver says it keeps for the process; it is in no total. */
static void smi_processes_driver(const struct smi_picture *picture, struct table *table,
				 const struct snapshot_process *process,
				 const struct snapshot_part *part)
{
	struct amount_driver_row rows[AMOUNT_DRIVER_ROWS];
	size_t count = amount_of_driver(part->driver_memory, rows);
	char number[TEXT_NUMBER_SIZE];

	for (size_t i = 0; i < count; i++) {
		smi_processes_left(picture, table, process, part);
		table_text(table, rows[i].name);
		table_text(table, text_size(rows[i].bytes, number));
		smi_processes_right(picture, table, process, part, rows[i].count > 0,
				    rows[i].count);
	}
}

static void smi_processes_types(const struct smi_picture *picture, struct table *table,
				const struct snapshot_process *process,
				const struct snapshot_part *part)
{
	bool any = false;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];

		if (!memory->allocs && !memory->buffers && !memory->used)
			continue;
		any = true;
		smi_processes_left(picture, table, process, part);
		table_text(table, types_name(type));
		smi_picture_cell(picture, table, memory);
		smi_processes_right(picture, table, process, part, smi_processes_counts(process),
				    memory->buffers);
	}
	if (!any && process->untracked) {
		smi_processes_left(picture, table, process, part);
		table_span(table, 2, "not tracked");
		smi_processes_right(picture, table, process, part, false, 0);
	}
	smi_processes_driver(picture, table, process, part);
}

/* The columns of the details are the same without times. */
#define SMI_LEFT                                                      \
	{"PID", true, .least = 7}, {"User", .cut = true, .least = 8}, \
		{"Command", .cut = true, .least = 11},                \
	{                                                             \
		"Dev", true, .least = 4                               \
	}
#define SMI_CONTAINER                                             \
	{                                                         \
		"Container", .cut = true, .order = 1, .least = 12 \
	}

void smi_processes(const struct smi_picture *picture, struct table *table)
{
	static const struct table_column columns[] =
		{
			SMI_LEFT,
			{"DRAM", true, .least = 10},
			{"L1", true, .least = 10},
			{"Buffers", true},
			{"From", .least = 5},
			{"Idle", true, .least = 6},
			{"Age", true, .order = 2, .least = 6},
			SMI_CONTAINER,
		},
					 details[] = {
						 SMI_LEFT,
						 {"Type", .least = 13},
						 {"Used", true, .least = 10},
						 {"Buffers", true},
						 {"From", .least = 5},
						 SMI_CONTAINER,
					 };
	const struct snapshot *snapshot = picture->snapshot;

	if (picture->style->details)
		table_begin(table, picture->out, details, ARRAY_SIZE(details), picture->width);
	else
		table_begin(table, picture->out, columns, ARRAY_SIZE(columns), picture->width);
	table_frame(table);
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (!smi_picture_shows_process(picture, process))
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			if (!smi_picture_shows_device(picture, &snapshot->devices[part->row]))
				continue;
			if (picture->style->details)
				smi_processes_types(picture, table, process, part);
			else
				smi_processes_part(picture, table, process, part);
		}
	}
}
