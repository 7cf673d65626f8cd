/* SPDX-License-Identifier: Apache-2.0 */

/* The lists of buffers and kernels that the old server printed. */

#include "answers/remaining-report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "answers/seed-lines.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "model/merge.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "model/types.h"

static const char report_box_top[] =
	"╔══════════════════════════════════════════════════════════════╗\n";
static const char report_box_end[] =
	"╚══════════════════════════════════════════════════════════════╝\n";
static const char report_rule[] =
	"═══════════════════════════════════════════════════════════════\n";
static const char report_thin[] =
	"  ------------------------------------------------------------\n";

/* A buffer, and on how many devices its process has the same address. */
struct report_row {
	const struct snapshot_buffer *buffer;
	uint32_t shared;
};

struct report {
	FILE *out;
	const struct snapshot *snapshot;
	const struct remaining_report_history *history; /* NULL = none */
	struct report_row *rows;
	size_t count;
};

/* By device and kind, the youngest first. Kernels by their sort instead. */
static int report_compare(const void *left, const void *right)
{
	const struct snapshot_buffer *a = ((const struct report_row *)left)->buffer;
	const struct snapshot_buffer *b = ((const struct report_row *)right)->buffer;
	int r = bits_compare(a->device, b->device);

	if (r == 0)
		r = bits_compare(a->type, b->type);
	if (r == 0)
		r = bits_compare(a->kernel_sort, b->kernel_sort);
	if (r == 0)
		r = bits_compare(b->born_ns, a->born_ns);
	if (r == 0)
		r = bits_compare(a->address, b->address);
	return r ? r : bits_compare(a->process, b->process);
}

/* What makes two of them the same but for the device. */
static int report_compare_same(const void *left, const void *right)
{
	const struct snapshot_buffer *a = ((const struct report_row *)left)->buffer;
	const struct snapshot_buffer *b = ((const struct report_row *)right)->buffer;
	int r = bits_compare(a->process, b->process);

	if (r == 0)
		r = bits_compare(a->type, b->type);
	return r ? r : bits_compare(a->address, b->address);
}

static void report_find_shared(struct report *report)
{
	size_t begin = 0;

	for (size_t i = 1; i <= report->count; i++) {
		if (i < report->count &&
		    report_compare_same(&report->rows[begin], &report->rows[i]) == 0)
			continue;
		for (size_t k = begin; k < i; k++)
			report->rows[k].shared = (uint32_t)(i - begin);
		begin = i;
	}
}

/* Kernels, or everything else. */
static int report_init(struct report *report, FILE *out, const struct snapshot *snapshot,
		       bool kernels)
{
	*report = (struct report){.out = out, .snapshot = snapshot};
	report->rows = calloc(snapshot->buffer_count + 1, sizeof(*report->rows));
	if (!report->rows)
		return -ENOMEM;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];

		if (snapshot->processes[buffer->process].alive &&
		    (buffer->type == TYPES_KERNEL) == kernels)
			report->rows[report->count++].buffer = buffer;
	}
	qsort(report->rows, report->count, sizeof(*report->rows), report_compare_same);
	report_find_shared(report);
	qsort(report->rows, report->count, sizeof(*report->rows), report_compare);
	return 0;
}

static void report_deinit(struct report *report)
{
	free(report->rows);
}

/* Whole kilobytes as such, others with two decimals. */
static void report_put_kb(FILE *out, uint64_t bytes)
{
	if (bytes % 1024 == 0)
		fprintf(out, "%" PRIu64 " KB", bytes / 1024);
	else
		fprintf(out, "%.2f KB", (double)bytes / 1024.0);
}

static void report_put_row(const struct report *report, const struct report_row *row)
{
	const struct snapshot_buffer *buffer = row->buffer;
	const struct snapshot_process *process = &report->snapshot->processes[buffer->process];
	uint64_t now = report->snapshot->time_ns;
	uint64_t age = now > buffer->born_ns ? (now - buffer->born_ns) / NS_PER_S : 0;

	fprintf(report->out, "    🔹 ID: 0x%" PRIx64 " | Size: ", buffer->address);
	report_put_kb(report->out, buffer->size);
	fprintf(report->out, " | PID: %" PRIu32 " | Refs: %" PRIu32 " | Age: %" PRIu64 "s",
		process->id.pid, buffer->refs, age);
	if (buffer->name) {
		fputs(" | 📝 ", report->out);
		text_put(report->out, buffer->name);
	}
	if (row->shared > 1)
		fprintf(report->out, " | 🔗 Shared across %" PRIu32 " devices", row->shared);
	fputc('\n', report->out);
	if (report->history)
		report->history->put(report->history->context, report->out, process, buffer);
	if (buffer->stack) {
		char plain[STACK_LINE];

		fputs("       └─ 📍 ", report->out);
		text_put(report->out, stack_plain(buffer->stack, false, plain, sizeof(plain)));
		fputc('\n', report->out);
	}
	fputc('\n', report->out);
}

/* From @from on, those of the same device and kind. */
static size_t report_put_group(const struct report *report, size_t from, const char *noun)
{
	const struct snapshot_buffer *first = report->rows[from].buffer;
	const char *kind = first->type == TYPES_KERNEL ? seed_lines_sort(first->kernel_sort)
						       : types_name(first->type);
	uint64_t bytes = 0;
	size_t to = from;

	while (to < report->count && report->rows[to].buffer->device == first->device &&
	       report->rows[to].buffer->type == first->type &&
	       report->rows[to].buffer->kernel_sort == first->kernel_sort)
		bytes = merge_add(bytes, report->rows[to++].buffer->size);
	fprintf(report->out, "  📦 %s: %zu %s, %.2f MB total\n", kind, to - from, noun,
		(double)bytes / SEED_LINES_MB);
	fputs(report_thin, report->out);
	for (size_t i = from; i < to; i++)
		report_put_row(report, &report->rows[i]);
	return to;
}

static void report_put(const struct report *report, const char *noun)
{
	size_t at = 0;

	while (at < report->count) {
		uint32_t device = report->rows[at].buffer->device;
		size_t end = at;

		while (end < report->count && report->rows[end].buffer->device == device)
			end++;
		fprintf(report->out, "%s📍 Device %" PRIu32 ": %zu %s\n%s\n", report_rule, device,
			end - at, noun, report_rule);
		while (at < end)
			at = report_put_group(report, at, noun);
	}
}

/* Lists are cut at a maximum, and then the snapshot has a note. */
static void report_put_notes(const struct report *report)
{
	for (size_t i = 0; i < report->snapshot->note_count; i++) {
		fputs("⚠ ", report->out);
		text_put(report->out, report->snapshot->notes[i]);
		fputc('\n', report->out);
	}
}

void remaining_report_double_freed(FILE *out, const struct remaining_report_history *history)
{
	if (history->double_freed == 0)
		return;
	fprintf(out, "\n%s║                     DOUBLE-FREED BUFFERS                     ║\n%s\n",
		report_box_top, report_box_end);
	history->put_double_freed(history->context, out);
}

int remaining_report_buffers(FILE *out, const struct snapshot *snapshot,
			     const struct remaining_report_history *history)
{
	CLEANUP(report_deinit) struct report report = {0};
	int r = report_init(&report, out, snapshot, false);

	if (r < 0)
		return r;
	report.history = history;
	fprintf(out, "\n%s║           REMAINING ALLOCATED BUFFERS (DETAILED)            ║\n%s\n",
		report_box_top, report_box_end);
	if (report.count == 0)
		fputs("✓ No buffers remaining - perfect cleanup!\n", out);
	if (report.count == 0 && history && history->double_freed > 0)
		fprintf(out,
			"⚠️  However, found %zu buffers that were DOUBLE-FREED during "
			"execution!\n",
			history->double_freed);
	report_put(&report, "buffers");
	if (report.count > 0)
		fprintf(out, "Total remaining buffers: %zu\n", report.count);
	if (history)
		remaining_report_double_freed(out, history);
	report_put_notes(&report);
	return 0;
}

int remaining_report_kernels(FILE *out, const struct snapshot *snapshot)
{
	CLEANUP(report_deinit) struct report report = {0};
	int r = report_init(&report, out, snapshot, true);

	if (r < 0)
		return r;
	fprintf(out, "\n%s║                        LOADED KERNELS                        ║\n%s\n",
		report_box_top, report_box_end);
	if (report.count == 0)
		fputs("✓ No kernels loaded\n", out);
	report_put(&report, "kernels");
	if (report.count > 0)
		fprintf(out, "Total loaded kernels: %zu\n", report.count);
	report_put_notes(&report);
	return 0;
}
