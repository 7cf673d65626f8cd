/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem analyze for people: what was read, each device, then what went wrong, the worst first. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "base/text.h"
#include "cli/common/output.h"
#include "legacy/analyze/analyze.h"
#include "model/types.h"

#define ANALYZE_FRAME_COLUMNS 400u

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_more(uint64_t count, uint64_t shown)
{
	if (count > shown)
		printf("  ... and %" PRIu64 " more\n", count - shown);
}

static void print_files(const struct analyze *analyze)
{
	for (size_t i = 0; i < analyze->file_count; i++) {
		const struct analyze_file *file = &analyze->files[i];
		const char *between = " (";

		text_put(stdout, analyze_path(file));
		printf(": %" PRIu64 " line%s, %" PRIu64 " event%s", file->counts.lines,
		       plural(file->counts.lines), file->counts.events,
		       plural(file->counts.events));
		for (uint32_t f = 0; f < LOG_READER_FORMATS; f++) {
			if (!(file->counts.formats & 1u << f))
				continue;
			printf("%s%s", between, log_reader_format_name(f));
			between = ", ";
		}
		if (file->counts.events)
			putchar(')');
		if (file->counts.damaged)
			printf(", %" PRIu64 " damaged and skipped", file->counts.damaged);
		if (file->counts.other)
			printf(", %" PRIu64 " other line%s", file->counts.other,
			       plural(file->counts.other));
		putchar('\n');
		if (analyze_no_frees(file))
			printf("  %s\n", analyze_no_frees(file));
	}
}

static void print_number(struct table *table, bool is_known, uint64_t number)
{
	if (is_known)
		table_format(table, "%" PRIu64, number);
	else
		table_text(table, "?");
}

static void print_bytes(struct table *table, bool is_known, uint64_t bytes)
{
	char size[TEXT_NUMBER_SIZE];

	table_text(table, is_known ? text_size(bytes, size) : "?");
}

static void print_sum(struct table *table, const struct log_analysis_device *device,
		      const struct log_analysis_sum *sum)
{
	const char *type = types_name(sum->type);

	if (sum->allocs + sum->frees + sum->hooked + sum->leaks +
		    sum->found[LOG_ANALYSIS_DOUBLE_FREE] + sum->found[LOG_ANALYSIS_UNKNOWN_FREE] ==
	    0)
		return;
	table_text(table, log_reader_format_name(device->format));
	print_number(table, true, device->number);
	table_text(table, type ? type : "?");
	print_number(table, true, sum->allocs);
	print_number(table, true, sum->frees);
	print_bytes(table, device->has_frees, sum->peak_bytes);
	print_number(table, device->has_frees, sum->leaks ? sum->leaks : sum->live);
	print_number(table, true, sum->found[LOG_ANALYSIS_DOUBLE_FREE]);
	print_number(table, true, sum->found[LOG_ANALYSIS_UNKNOWN_FREE]);
	print_number(table, true, sum->found[LOG_ANALYSIS_SIZE_CHANGE]);
}

static void print_devices(const struct analyze *analyze)
{
	static const struct table_column columns[] = {
		{"LOG"},
		{"DEVICE", true},
		{"TYPE"},
		{"ALLOCS", true, .order = 5},
		{"FREES", true, .order = 4},
		{"PEAK", true},
		{"LEFT", true},
		{"DOUBLE", true, .order = 3},
		{"UNKNOWN", true, .order = 2},
		{"RESIZED", true, .order = 1},
	};
	const struct log_analysis_sum *totals = &analyze->totals;
	struct table table;

	if (totals->allocs + totals->frees + totals->leaks +
		    totals->found[LOG_ANALYSIS_UNKNOWN_FREE] ==
	    0)
		return;
	putchar('\n');
	table_begin(&table, stdout, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < ARRAY_SIZE(analyze->analysis->devices); i++) {
		const struct log_analysis_device *device = analyze->analysis->devices[i];

		for (uint32_t t = 0; device && t < LOG_ANALYSIS_TYPES; t++)
			print_sum(&table, device, &device->sums[t]);
	}
	table_end(&table);
}

/* Processes, if there are several; their figures are of all types. */
static void print_processes(const struct analyze *analyze)
{
	static const struct table_column columns[] = {
		{"LOG"},
		{"PID", true},
		{"ALLOCS", true, .order = 5},
		{"FREES", true, .order = 4},
		{"LEFT", true},
		{"BYTES", true},
		{"DOUBLE", true, .order = 2},
		{"UNKNOWN", true, .order = 1},
		{"ENDED", .order = 3},
	};
	const struct log_analysis *analysis = analyze->analysis;
	struct table table;
	size_t shown = 0;

	if (analyze->has_type || analysis->process_count < 2)
		return;
	putchar('\n');
	table_begin(&table, stdout, columns, ARRAY_SIZE(columns), output_width());
	for (; shown < analysis->process_count && shown < analyze->top; shown++) {
		const struct log_analysis_process *process = analysis->processes[shown];
		const struct log_analysis_sum *sum = &process->sum;

		table_text(&table, log_reader_format_name(process->format));
		print_number(&table, process->has_pid, process->pid);
		print_number(&table, true, sum->allocs);
		print_number(&table, true, sum->frees);
		print_number(&table, process->has_frees, sum->leaks);
		print_bytes(&table, process->has_frees, sum->leaked_bytes);
		print_number(&table, true, sum->found[LOG_ANALYSIS_DOUBLE_FREE]);
		print_number(&table, true, sum->found[LOG_ANALYSIS_UNKNOWN_FREE]);
		table_text(&table, process->has_ended ? "yes" : "no");
	}
	table_end(&table);
	print_more(analysis->process_count, shown);
}

static void print_pid(const struct log_analysis_process *process)
{
	if (process->has_pid)
		printf(", pid %" PRIu32, process->pid);
}

static void print_place(const struct analyze *analyze, const char *path, uint64_t line)
{
	if (analyze->file_count > 1) {
		putchar(' ');
		text_put(stdout, path);
		printf(":%" PRIu64, line);
	} else
		printf(" line %" PRIu64, line);
}

/* Frames, one below the other. A name of C++ may fill a page: then its beginning. */
static void print_stack(const char *stack, const char *indent)
{
	while (stack && *stack) {
		size_t length = strcspn(stack, "\n");
		CLEANUP_FREE char *frame = strndup(stack, length);
		char text[TEXT_ESCAPE_SIZE(4 * ANALYZE_FRAME_COLUMNS)];

		text_fit(frame ? frame : "", ANALYZE_FRAME_COLUMNS, text, sizeof(text));
		printf("%s%s\n", indent, text);
		stack += length + (stack[length] == '\n');
	}
}

static void print_leak(const struct analyze *analyze, const struct log_analysis_leak *leak)
{
	const char *type = types_name(leak->type);
	char size[TEXT_NUMBER_SIZE];

	printf("  %10s  0x%" PRIx64 " on device %" PRIu32, text_size(leak->size, size),
	       leak->address, leak->device);
	if (type)
		printf(", %s", type);
	print_pid(leak->process);
	if (leak->refs > 1)
		printf(", %" PRIu32 " references", leak->refs);
	fputs(leak->is_listed ? ", listed in" : ", allocated in", stdout);
	print_place(analyze, leak->path, leak->line);
	putchar('\n');
	print_stack(leak->site->stack, "              ");
}

static void print_leaks(const struct analyze *analyze, enum log_analysis_how how, uint64_t count,
			uint64_t bytes)
{
	const struct log_analysis *analysis = analyze->analysis;
	char size[TEXT_NUMBER_SIZE];
	uint64_t shown = 0;

	if (count == 0)
		return;
	printf("\n%s: %" PRIu64 " buffer%s, %s\n",
	       how == LOG_ANALYSIS_PROCESS_ENDED ? "Left by processes that ended"
						 : "Not freed when the log ends",
	       count, plural(count), text_size(bytes, size));
	for (size_t i = 0; i < analysis->leak_count && shown < analyze->top; i++) {
		if (analysis->leaks[i].how != how)
			continue;
		print_leak(analyze, &analysis->leaks[i]);
		shown++;
	}
	print_more(count, shown);
}

static const char *cause_in_words(enum log_analysis_cause cause)
{
	static const char *const words[LOG_ANALYSIS_CAUSES] = {
		[LOG_ANALYSIS_FREED_BEFORE] = "allocated once and freed before",
		[LOG_ANALYSIS_ADDRESS_REUSE] =
			"address reuse: it had several lives, and an old owner freed it again",
		[LOG_ANALYSIS_BEFORE_LOG] = "never seen: allocated before the log began, or never",
		[LOG_ANALYSIS_LONG_AGO] = "not seen, or freed too long ago to be remembered",
		[LOG_ANALYSIS_RESTART] =
			"a good free: the server was started again and had forgotten the buffer",
		[LOG_ANALYSIS_OWNER_ENDED] = "its process was taken for dead before",
		[LOG_ANALYSIS_OTHER_TYPE] = "what lives there is of another type",
		[LOG_ANALYSIS_OTHER_DEVICE] = "that address lives on another device",
		[LOG_ANALYSIS_OTHER_PROCESS] = "another process has it",
		[LOG_ANALYSIS_WHILE_LIVE] = "allocated again while it lived: a free is missing",
		[LOG_ANALYSIS_AT_FREE] = "freed with another size",
		[LOG_ANALYSIS_REPORTED] = "as ttmemd reported it",
	};

	return words[cause];
}

static void print_finding(const struct analyze *analyze, const struct log_analysis_finding *finding)
{
	const char *type = types_name(finding->type);

	printf("  0x%" PRIx64 " on device %" PRIu32, finding->address, finding->device);
	if (type)
		printf(", %s", type);
	print_pid(finding->process);
	if (finding->size)
		printf(", %" PRIu64 " bytes", finding->size);
	if (finding->other_size)
		printf(", then %" PRIu64, finding->other_size);
	putchar(',');
	print_place(analyze, finding->path, finding->line);
	if (finding->count > 1)
		printf(", %" PRIu64 " times", finding->count);
	if (finding->last_line != finding->line || finding->last_path != finding->path) {
		fputs(" until", stdout);
		print_place(analyze, finding->last_path, finding->last_line);
	}
	printf("\n      %s\n", cause_in_words((enum log_analysis_cause)finding->cause));
}

static void print_findings(const struct analyze *analyze, enum log_analysis_kind kind,
			   const char *title)
{
	uint64_t count = analyze->totals.found[kind], shown = 0, rows = 0;

	if (count == 0)
		return;
	printf("\n%s: %" PRIu64 "\n", title, count);
	for (size_t i = 0; i < analyze->analysis->finding_count && rows < analyze->top; i++) {
		const struct log_analysis_finding *finding = &analyze->analysis->findings[i];

		if (finding->kind != kind)
			continue;
		print_finding(analyze, finding);
		shown += finding->count;
		rows++;
	}
	print_more(count, shown);
}

static void print_sites(const struct analyze *analyze)
{
	size_t count = analyze->site_count;
	char size[TEXT_NUMBER_SIZE], left[TEXT_NUMBER_SIZE];

	if (count == 0)
		return;
	puts("\nTop call sites");
	for (size_t i = 0; i < count && i < analyze->top; i++) {
		const struct log_analysis_site *site = analyze->analysis->sites[i];
		const struct log_analysis_sum *sum = &site->sum;
		const char *type = types_name(sum->type);

		printf("  %s in %" PRIu64 " allocation%s%s%s, %" PRIu64 " freed",
		       text_size(sum->bytes, size), sum->allocs, plural(sum->allocs),
		       type ? " of " : "", type ? type : "", sum->frees);
		if (sum->replaced)
			printf(", %" PRIu64 " replaced", sum->replaced);
		printf(", %s left\n", text_size(sum->leaked_bytes, left));
		print_stack(site->stack, "      ");
	}
	print_more(count, analyze->top);
}

static void print_notes(const struct analyze *analyze)
{
	const struct log_analysis *analysis = analyze->analysis;
	uint64_t unseen = analysis->unseen - analysis->unlisted;
	char size[TEXT_NUMBER_SIZE];

	if (analyze->unnamed)
		printf("\nCircular buffers and kernels left (without addresses in the log): "
		       "%" PRIu64 ", about %s\n",
		       analyze->unnamed, text_size(analyze->unnamed_bytes, size));
	if (unseen)
		printf("\n%" PRIu64
		       " more buffers of ended processes were allocated before the log "
		       "began\n",
		       unseen);
	if (analysis->unlisted)
		printf("\n%" PRIu64 " more buffers of ended processes are not listed\n",
		       analysis->unlisted);
	if (analysis->rejected)
		printf("\n%" PRIu64 " messages were refused by the server\n", analysis->rejected);
	if (analysis->merged)
		printf("\n%" PRIu64 " allocations were counted by the server as references to "
		       "another process's buffer\n",
		       analysis->merged);
	if (analysis->is_inexact || analysis->dropped)
		puts("\nnote: there is more in these logs than is kept: lists and causes may be "
		     "incomplete");
}

void analyze_print(const struct analyze *analyze)
{
	const struct log_analysis_sum *totals = &analyze->totals;
	const struct log_reader_counts *counts = &analyze->counts;
	uint64_t wrong = totals->leaks + analyze->analysis->unlisted;

	for (size_t i = 0; i < LOG_ANALYSIS_KINDS; i++)
		wrong += totals->found[i];
	print_files(analyze);
	print_devices(analyze);
	print_processes(analyze);
	print_leaks(analyze, LOG_ANALYSIS_PROCESS_ENDED, analyze->ended, analyze->ended_bytes);
	print_leaks(analyze, LOG_ANALYSIS_END_OF_LOG, totals->leaks - analyze->ended,
		    totals->leaked_bytes - analyze->ended_bytes);
	print_findings(analyze, LOG_ANALYSIS_DOUBLE_FREE, "Double frees");
	print_findings(analyze, LOG_ANALYSIS_UNKNOWN_FREE, "Unknown frees");
	print_findings(analyze, LOG_ANALYSIS_SIZE_CHANGE, "Size changes");
	print_sites(analyze);
	print_notes(analyze);
	if (counts->events == 0) {
		/* Why there are none is said once. */
		if (!analyze->is_doubted)
			puts("\nno events");
	} else if (wrong == 0 && counts->blind == 0) {
		puts("\nnothing was left, freed twice or freed without being known");
	} else if (wrong == 0 && counts->blind < counts->events) {
		puts("\nof what has frees in the log, nothing was left, freed twice or freed "
		     "without being known");
	}
}
