/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The picture of "ttmem smi": two boxes of 80 columns. Text folds what lies in the same memory: DRAM
 * with TRACE, L1 with L1_SMALL, CB and KERNEL; JSON and CSV never do.
 */

#include "cli/smi.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <ttmem/ttmem.h>

#include "base/text.h"
#include "core/document.h"
#include "core/filter.h"
#include "core/merge.h"
#include "core/snapshot.h"
#include "core/types.h"

#define SMI_LINE "------------------------------------------------------------------------------"
#define SMI_WIDTH 76u /* inside the box and its blanks */
#define SMI_BAR 7u

struct smi_picture {
	FILE *out;
	const struct snapshot *snapshot;
	const struct filter *filter;
	const struct smi_style *style;
};

/* What is used of one kind of memory, folded or not. */
struct smi_amount {
	uint64_t used;
	uint64_t buffers;
	uint64_t capacity;
	uint32_t bound;
};

static void smi_rule(const struct smi_picture *picture, bool columns)
{
	if (columns)
		fprintf(picture->out, "+%.7s+%.24s+%.45s+\n", SMI_LINE, SMI_LINE, SMI_LINE);
	else
		fprintf(picture->out, "+%s+\n", SMI_LINE);
}

/* A line right across; @text is safe already. */
static void smi_across(const struct smi_picture *picture, const char *text)
{
	size_t width = text_width(text);

	fprintf(picture->out, "| %s%*s |\n", text, width < SMI_WIDTH ? (int)(SMI_WIDTH - width) : 0,
		"");
}

static const char *smi_bound(const struct smi_picture *picture, uint32_t bound)
{
	if (bound == SNAPSHOT_EXACT)
		return "";
	if (bound == SNAPSHOT_AT_LEAST)
		return picture->style->utf8 ? "\u2265" : ">";
	return picture->style->utf8 ? "\u2264" : "<";
}

/* A cell that is aligned right, whatever bytes its letters take. */
static void smi_right(const struct smi_picture *picture, const char *text, int width)
{
	int pad = width - (int)text_width(text);

	fprintf(picture->out, "%*s%s", pad > 0 ? pad : 0, "", text);
}

static void smi_left(const struct smi_picture *picture, const char *text, size_t width)
{
	char cell[128];

	text_fit(text, width, cell, sizeof(cell));
	fprintf(picture->out, "%s%*s", cell, (int)(width - text_width(cell)), "");
}

static void smi_size(const struct smi_picture *picture, const struct smi_amount *amount, int width)
{
	char number[TEXT_NUMBER_SIZE], cell[TEXT_NUMBER_SIZE + 8];

	snprintf(cell, sizeof(cell), "%s%s", smi_bound(picture, amount->bound),
		 text_size(amount->used, number));
	smi_right(picture, cell, width);
}

static void smi_bar(const struct smi_picture *picture, double share)
{
	const char *full = picture->style->utf8 ? "\u2588" : "#";
	const char *empty = picture->style->utf8 ? "\u2591" : ".";
	const char *colour = share >= 0.9 ? "\033[31m" : share >= 0.75 ? "\033[33m" : "\033[32m";

	if (picture->style->colours)
		fputs(colour, picture->out);
	for (unsigned int i = 0; i < SMI_BAR; i++)
		fputs(share * SMI_BAR >= i + 0.5 ? full : empty, picture->out);
	if (picture->style->colours)
		fputs("\033[0m", picture->out);
}

/* The right column of a device: 43 wide. */
static void smi_usage(const struct smi_picture *picture, const char *label,
		      const struct smi_amount *amount)
{
	char number[TEXT_NUMBER_SIZE];
	double share;

	fprintf(picture->out, " %-4s ", label);
	smi_size(picture, amount, 11);
	if (!amount->capacity) {
		fprintf(picture->out, " / %10s %*s |\n", "unknown", (int)SMI_BAR + 6, "");
		return;
	}
	share = (double)amount->used / (double)amount->capacity;
	fprintf(picture->out, " / %10s ", text_size(amount->capacity, number));
	smi_bar(picture, share);
	if (share < 0.9995)
		fprintf(picture->out, " %4.1f%% |\n", share * 100);
	else
		fprintf(picture->out, " %4.0f%% |\n", share < 99 ? share * 100 : 9900);
}

/* The left columns of a device. */
static void smi_device_left(const struct smi_picture *picture, const char *number, const char *text)
{
	fprintf(picture->out, "| %5s | ", number);
	smi_left(picture, text, 22);
	fputs(" |", picture->out);
}

static struct smi_amount smi_device_amount(const struct snapshot_device *device, uint32_t folded)
{
	struct smi_amount amount = {.capacity = device->memory[folded].capacity};

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (types_folded(type) != folded)
			continue;
		amount.used = merge_add(amount.used, device->memory[type].used);
		amount.buffers = merge_add(amount.buffers, device->memory[type].buffers);
		amount.bound = merge_bound(amount.bound, device->memory[type].bound);
	}
	return amount;
}

/* Below a device: each type on its own. */
static void smi_device_details(const struct smi_picture *picture,
			       const struct snapshot_device *device)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_device_memory *memory = &device->memory[type];
		struct smi_amount used = {.used = memory->used, .bound = memory->bound};
		char number[TEXT_NUMBER_SIZE];

		smi_device_left(picture, "", "");
		fprintf(picture->out, "  %-13s", types_name(type));
		smi_size(picture, &used, 11);
		fprintf(picture->out, " %7" PRIu64 " %9s |\n", memory->buffers,
			memory->peak_is_unknown ? "-" : text_size(memory->peak, number));
	}
}

static void smi_device(const struct smi_picture *picture, const struct snapshot_device *device)
{
	struct smi_amount dram = smi_device_amount(device, TTMEM_DRAM);
	struct smi_amount l1 = smi_device_amount(device, TTMEM_L1);
	struct smi_amount host = smi_device_amount(device, TTMEM_SYSTEM_MEMORY);
	char number[16], name[128], uid[32];

	snprintf(number, sizeof(number), "%" PRIu32 "%s", device->device,
		 device->remote ? "R" : "");
	snprintf(name, sizeof(name), "%s%s%s", device->card ? device->card : "",
		 device->card && device->arch ? " " : "", device->arch ? device->arch : "");
	if (device->unique_id)
		snprintf(uid, sizeof(uid), "0x%" PRIx64, device->unique_id);
	else
		snprintf(uid, sizeof(uid), "(by number)");

	smi_device_left(picture, number, *name ? name : "unknown card");
	smi_usage(picture, "DRAM", &dram);
	smi_device_left(picture, "", uid);
	smi_usage(picture, "L1", &l1);
	if (host.used || host.buffers) {
		smi_device_left(picture, "", "");
		smi_usage(picture, "Host", &host);
	}
	if (picture->style->details)
		smi_device_details(picture, device);
}

static bool smi_shows_device(const struct smi_picture *picture,
			     const struct snapshot_device *device)
{
	uint64_t buffers = 0;

	if (!filter_wants_device(picture->filter, device->device, device->unique_id))
		return false;
	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		buffers |= device->memory[type].buffers;
	return picture->style->all || picture->filter->device_count || buffers || !device->closed;
}

static void smi_devices(const struct smi_picture *picture)
{
	const struct snapshot *snapshot = picture->snapshot;
	struct smi_amount total = {0};
	char text[128], number[TEXT_NUMBER_SIZE];
	size_t shown = 0;

	smi_rule(picture, true);
	fprintf(picture->out, "|   Dev | %-22s | %-43s |\n", "Card",
		"Memory       Used /      Total");
	smi_rule(picture, true);
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];

		if (!smi_shows_device(picture, device))
			continue;
		smi_device(picture, device);
		shown++;
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			total.used = merge_add(total.used, device->memory[type].used);
			total.buffers = merge_add(total.buffers, device->memory[type].buffers);
			total.bound = merge_bound(total.bound, device->memory[type].bound);
		}
	}
	smi_rule(picture, true);
	snprintf(text, sizeof(text), "Total: %s%s in %" PRIu64 " buffer%s on %zu device%s",
		 smi_bound(picture, total.bound), text_size(total.used, number), total.buffers,
		 total.buffers == 1 ? "" : "s", shown, shown == 1 ? "" : "s");
	smi_across(picture, text);
	smi_rule(picture, false);
}

static struct smi_amount smi_part_amount(const struct snapshot_part *part, uint32_t folded)
{
	struct smi_amount amount = {0};

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		if (types_folded(type) != folded)
			continue;
		amount.used = merge_add(amount.used, part->memory[type].used);
		amount.buffers = merge_add(amount.buffers, part->memory[type].buffers);
		amount.bound = merge_bound(amount.bound, part->memory[type].bound);
	}
	return amount;
}

/* Who and where: 41 wide. */
static void smi_process_left(const struct smi_picture *picture,
			     const struct snapshot_process *process,
			     const struct snapshot_part *part)
{
	char comm[160];

	snprintf(comm, sizeof(comm), "%s%s", process->alive ? "" : "(ended) ", process->comm);
	fprintf(picture->out, "| %8" PRIu32 " ", process->pid);
	smi_left(picture, process->user, 10);
	fputc(' ', picture->out);
	smi_left(picture, comm, 15);
	fprintf(picture->out, " %4" PRIu32 " ", part->device);
}

static void smi_part(const struct smi_picture *picture, const struct snapshot_process *process,
		     const struct snapshot_part *part)
{
	struct smi_amount dram = smi_part_amount(part, TTMEM_DRAM);
	struct smi_amount l1 = smi_part_amount(part, TTMEM_L1);
	uint64_t buffers = 0;

	for (uint32_t type = 0; type < BOOK_TYPES; type++)
		buffers = merge_add(buffers, part->memory[type].buffers);
	smi_process_left(picture, process, part);
	smi_size(picture, &dram, 11);
	fputc(' ', picture->out);
	smi_size(picture, &l1, 11);
	fprintf(picture->out, " %11" PRIu64 " |\n", buffers);
}

static void smi_part_details(const struct smi_picture *picture,
			     const struct snapshot_process *process,
			     const struct snapshot_part *part)
{
	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const struct snapshot_memory *memory = &part->memory[type];
		struct smi_amount used = {.used = memory->used, .bound = memory->bound};

		if (!memory->allocs && !memory->buffers)
			continue;
		smi_process_left(picture, process, part);
		smi_left(picture, types_name(type), 13);
		smi_size(picture, &used, 11);
		fprintf(picture->out, " %10" PRIu64 " |\n", memory->buffers);
	}
}

static void smi_processes(const struct smi_picture *picture)
{
	const struct snapshot *snapshot = picture->snapshot;

	if (picture->style->details)
		smi_across(picture, "     PID User       Command          Dev "
				    "Type                Used    Buffers");
	else
		smi_across(picture, "     PID User       Command          Dev "
				    "       DRAM          L1     Buffers");
	smi_rule(picture, false);
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		if (!process->alive && !picture->style->all)
			continue;
		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];

			if (!smi_shows_device(picture, &snapshot->devices[part->row]))
				continue;
			if (picture->style->details)
				smi_part_details(picture, process, part);
			else
				smi_part(picture, process, part);
		}
	}
	smi_rule(picture, false);
}

void smi_table(FILE *out, const struct snapshot *snapshot, const struct filter *filter,
	       const struct smi_style *style)
{
	const struct smi_picture picture = {out, snapshot, filter, style};
	time_t seconds = (time_t)(snapshot->time_ns / 1000000000u);
	char when[32] = "", title[128];
	struct tm local;

	if (localtime_r(&seconds, &local))
		strftime(when, sizeof(when), "%F %T", &local);
	snprintf(title, sizeof(title), "ttmem %d.%d.%d%*s", TTMEM_VERSION_MAJOR,
		 TTMEM_VERSION_MINOR, TTMEM_VERSION_PATCH, 65, when);
	smi_rule(&picture, false);
	smi_across(&picture, title);
	smi_devices(&picture);
	smi_processes(&picture);
	for (size_t i = 0; i < snapshot->note_count; i++) {
		fputs("note: ", out);
		text_put(out, snapshot->notes[i]);
		fputc('\n', out);
	}
	if (snapshot->notes_lost)
		fprintf(out, "note: and %zu more notes\n", snapshot->notes_lost);
}
