/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of processes: one line per device of each. 80 columns hold process, device, memory,
 * source and idle time; more columns hold age and container as well.
 */

#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "cli/smi/smi-picture.h"
#include "cli/smi/smi.h"
#include "model/amount.h"
#include "model/snapshot.h"
#include "model/types.h"

#define SMI_CONTAINER_WIDTH 112u /* minimum width for the container column */

/* Column widths; 0 = absent. */
struct smi_columns {
	unsigned int pid, user, command, device, size, type, buffers, from, idle, age, container;
};

static struct smi_columns smi_processes_columns(const struct smi_picture *picture)
{
	struct smi_columns columns = {
		.pid = 7,
		.user = 8,
		.device = 4,
		.size = picture->size,
		.buffers = 7,
		.from = 5,
		.idle = 6,
	};
	unsigned int used;

	if (picture->is_wide) {
		columns.user = 10;
		columns.from = 8;
		columns.age = 6;
	}
	if (picture->is_wide && picture->width >= SMI_CONTAINER_WIDTH + 2 * (picture->size - 10))
		columns.container = 12;
	if (picture->style->details) {
		columns.type = 13;
		columns.idle = columns.age = 0;
	}
	used = columns.pid + columns.user + columns.device + columns.buffers + columns.from + 5;
	used += columns.type ? columns.type + columns.size + 2 : 2 * columns.size + 2;
	used += columns.idle ? columns.idle + 1 : 0;
	used += columns.age ? columns.age + 1 : 0;
	used += columns.container ? columns.container + 1 : 0;
	columns.command = picture->width - 4 - used;
	return columns;
}

/* The longest names of users and programs. */
static void smi_processes_longest(const struct smi_picture *picture, unsigned int *ret_user,
				  unsigned int *ret_command)
{
	const struct snapshot *snapshot = picture->snapshot;

	*ret_user = *ret_command = 0;
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (!smi_picture_shows_process(picture, process))
			continue;
		*ret_user = (unsigned int)bits_max(*ret_user, text_width(process->user));
		*ret_command = (unsigned int)bits_max(*ret_command, text_width(process->comm));
	}
}

unsigned int smi_processes_lack(const struct smi_picture *picture)
{
	struct smi_columns columns = smi_processes_columns(picture);
	unsigned int user, command, lack = 0;

	smi_processes_longest(picture, &user, &command);
	lack += user > columns.user ? user - columns.user : 0;
	lack += command > columns.command ? command - columns.command : 0;
	return lack;
}

/* Columns as they are drawn: those of names get what they need. */
static struct smi_columns smi_processes_fit(const struct smi_picture *picture)
{
	struct smi_columns columns = smi_processes_columns(picture);
	unsigned int user, command;

	smi_processes_longest(picture, &user, &command);
	if (picture->style->widens && user > columns.user &&
	    columns.command >= user - columns.user + command) {
		columns.command -= user - columns.user;
		columns.user = user;
	}
	return columns;
}

static void smi_processes_titles(const struct smi_picture *picture,
				 const struct smi_columns *columns)
{
	FILE *out = picture->out;

	fprintf(out, "| %*s %-*s %-*s %*s ", (int)columns->pid, "PID", (int)columns->user, "User",
		(int)columns->command, "Command", (int)columns->device, "Dev");
	if (columns->type)
		fprintf(out, "%-*s %*s ", (int)columns->type, "Type", (int)columns->size, "Used");
	else
		fprintf(out, "%*s %*s ", (int)columns->size, "DRAM", (int)columns->size, "L1");
	fprintf(out, "%*s %-*s", (int)columns->buffers, "Buffers", (int)columns->from, "From");
	if (columns->idle)
		fprintf(out, " %*s", (int)columns->idle, "Idle");
	if (columns->age)
		fprintf(out, " %*s", (int)columns->age, "Age");
	if (columns->container)
		fprintf(out, " %-*s", (int)columns->container, "Container");
	fputs(" |\n", out);
}

/* The source, or what is odd about it, in five letters if there is no room for more. */
static void smi_processes_from(const struct smi_picture *picture, unsigned int width,
			       const struct snapshot_process *process,
			       const struct snapshot_part *part)
{
	static const char *const words[][2] = {
		{"socket", "sock"}, {"tt-metal", "metal"}, {"kernel", "kern"}};
	const char *source = part->is_region_counted ? "tt-metal"
			     : process->source       ? process->source
						     : "book";
	char cell[16];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (width < 8 && strcmp(source, words[i][0]) == 0)
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
		source = width < 8 ? "lost" : "gave up"; /* a note says why */
	else if (part->before_reset)
		source = "reset"; /* a note says what that means */
	snprintf(cell, sizeof(cell), "%s%s", source, part->differs ? "!" : "");
	smi_picture_left(picture, cell, width);
}

static void smi_processes_time(const struct smi_picture *picture, uint64_t since,
			       unsigned int width)
{
	uint64_t now = picture->snapshot->time_ns;
	char number[TEXT_NUMBER_SIZE];

	fputc(' ', picture->out);
	smi_picture_right(
		picture, since ? text_duration(now > since ? now - since : 0, number) : "-", width);
}

/* The columns after the amounts. */
static void smi_processes_right(const struct smi_picture *picture,
				const struct smi_columns *columns,
				const struct snapshot_process *process,
				const struct snapshot_part *part)
{
	smi_processes_from(picture, columns->from, process, part);
	if (columns->idle)
		smi_processes_time(picture, process->untracked ? 0 : process->last_ns,
				   columns->idle);
	if (columns->age)
		smi_processes_time(picture, process->start_ns, columns->age);
	if (columns->container) {
		fputc(' ', picture->out);
		smi_picture_left(picture, process->container ? process->container : "",
				 columns->container);
	}
	fputs(" |\n", picture->out);
}

static void smi_processes_left(const struct smi_picture *picture, const struct smi_columns *columns,
			       const struct snapshot_process *process,
			       const struct snapshot_part *part)
{
	const struct snapshot_device *row = &picture->snapshot->devices[part->row];
	char number[16];

	snprintf(number, sizeof(number), "%" PRIu32 "%s", row->device, row->remote ? "R" : "");
	fprintf(picture->out, "| %*" PRIu32 " ", (int)columns->pid, process->id.pid);
	smi_picture_left(picture, process->user, columns->user);
	fputc(' ', picture->out);
	smi_picture_left(picture, process->comm, columns->command);
	fputc(' ', picture->out);
	smi_picture_right(picture, number, columns->device);
	fputc(' ', picture->out);
}

/* Regions do not count buffers. */
static void smi_processes_buffers(const struct smi_picture *picture,
				  const struct smi_columns *columns,
				  const struct snapshot_process *process, uint64_t buffers)
{
	if (process->untracked || (process->source && strcmp(process->source, "tt-metal") == 0))
		smi_picture_right(picture, "-", columns->buffers);
	else
		smi_picture_count(picture, buffers, columns->buffers);
	fputc(' ', picture->out);
}

static void smi_processes_part(const struct smi_picture *picture, const struct smi_columns *columns,
			       const struct snapshot_process *process,
			       const struct snapshot_part *part)
{
	struct snapshot_memory dram = amount_of_part(part, TYPES_DRAM);
	struct snapshot_memory l1 = amount_of_part(part, TYPES_L1);
	uint64_t buffers = amount_of_part(part, AMOUNT_ALL).buffers;

	smi_processes_left(picture, columns, process, part);
	if (process->untracked) {
		smi_picture_right(picture, "not tracked", 2 * columns->size + 1);
	} else {
		smi_picture_size(picture, &dram, columns->size);
		fputc(' ', picture->out);
		smi_picture_size(picture, &l1, columns->size);
	}
	fputc(' ', picture->out);
	smi_processes_buffers(picture, columns, process, buffers);
	smi_processes_right(picture, columns, process, part);
}

/* What the driver says it keeps for the process; it is in no total. */
static void smi_processes_driver(const struct smi_picture *picture,
				 const struct smi_columns *columns,
				 const struct snapshot_process *process,
				 const struct snapshot_part *part)
{
	struct amount_driver_row rows[AMOUNT_DRIVER_ROWS];
	size_t count = amount_of_driver(part->driver_memory, rows);

	for (size_t i = 0; i < count; i++) {
		struct snapshot_memory used = {.used = rows[i].bytes};

		smi_processes_left(picture, columns, process, part);
		smi_picture_left(picture, rows[i].name, columns->type);
		fputc(' ', picture->out);
		smi_picture_size(picture, &used, columns->size);
		fputc(' ', picture->out);
		if (rows[i].count)
			smi_picture_count(picture, rows[i].count, columns->buffers);
		else
			smi_picture_right(picture, "-", columns->buffers);
		fputc(' ', picture->out);
		smi_processes_right(picture, columns, process, part);
	}
}

static void smi_processes_types(const struct smi_picture *picture,
				const struct smi_columns *columns,
				const struct snapshot_process *process,
				const struct snapshot_part *part)
{
	bool any = false;

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];
		struct snapshot_memory used = {.used = memory->used, .bound = memory->bound};

		if (!memory->allocs && !memory->buffers && !memory->used)
			continue;
		any = true;
		smi_processes_left(picture, columns, process, part);
		smi_picture_left(picture, types_name(type), columns->type);
		fputc(' ', picture->out);
		smi_picture_size(picture, &used, columns->size);
		fputc(' ', picture->out);
		smi_processes_buffers(picture, columns, process, memory->buffers);
		smi_processes_right(picture, columns, process, part);
	}
	if (!any && process->untracked) {
		smi_processes_left(picture, columns, process, part);
		smi_picture_left(picture, "not tracked", columns->type + 1 + columns->size);
		fputc(' ', picture->out);
		smi_processes_buffers(picture, columns, process, 0);
		smi_processes_right(picture, columns, process, part);
	}
	smi_processes_driver(picture, columns, process, part);
}

void smi_processes(const struct smi_picture *picture)
{
	struct smi_columns columns = smi_processes_fit(picture);
	const struct snapshot *snapshot = picture->snapshot;

	smi_processes_titles(picture, &columns);
	smi_picture_rule(picture);
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (!smi_picture_shows_process(picture, process))
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			if (!smi_picture_shows_device(picture, &snapshot->devices[part->row]))
				continue;
			if (picture->style->details)
				smi_processes_types(picture, &columns, process, part);
			else
				smi_processes_part(picture, &columns, process, part);
		}
	}
	smi_picture_rule(picture);
}
