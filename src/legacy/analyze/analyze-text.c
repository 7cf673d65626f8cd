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

static void print_device(struct table *table, const struct log_analysis_device *device)
{
	char size[TEXT_NUMBER_SIZE];

	for (uint32_t t = 0; t < LOG_ANALYSIS_TYPES; t++) {
		const struct log_analysis_sum *sum = &device->sums[t];
		const char *type = types_name(t);

		if (sum->allocs + sum->frees + sum->hooked + sum->found[LOG_ANALYSIS_DOUBLE_FREE] +
			    sum->found[LOG_ANALYSIS_UNKNOWN_FREE] ==
		    0)
			continue;
		table_text(table, log_reader_format_name(device->format));
		table_format(table, "%" PRIu32, device->number);
		table_text(table, type ? type : "?");
		table_format(table, "%" PRIu64, sum->allocs);
		table_format(table, "%" PRIu64, sum->frees);
		if (device->has_frees) {
			table_text(table, text_size(sum->peak_bytes, size));
			table_format(table, "%" PRIu64, sum->leaks ? sum->leaks : sum->live);
		} else {
			table_text(table, "?");
			table_text(table, "?");
		}
		table_format(table, "%" PRIu64, sum->found[LOG_ANALYSIS_DOUBLE_FREE]);
		table_format(table, "%" PRIu64, sum->found[LOG_ANALYSIS_UNKNOWN_FREE]);
		table_format(table, "%" PRIu64, sum->found[LOG_ANALYSIS_SIZE_CHANGE]);
	}
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
	struct table table;

	if (analyze->totals.allocs + analyze->totals.frees == 0 &&
	    analyze->totals.found[LOG_ANALYSIS_UNKNOWN_FREE] == 0)
		return;
	putchar('\n');
	table_begin(&table, stdout, columns, ARRAY_SIZE(columns), output_width());
	for (size_t i = 0; i < LOG_ANALYSIS_DEVICES; i++) {
		if (analyze->result.devices[i])
			print_device(&table, analyze->result.devices[i]);
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
	const struct log_analysis_result *result = &analyze->result;
	char size[TEXT_NUMBER_SIZE];
	struct table table;
	uint64_t shown = 0;

	if (analyze->has_type || result->process_count < 2)
		return;
	putchar('\n');
	table_begin(&table, stdout, columns, ARRAY_SIZE(columns), output_width());
	for (; shown < result->process_count && shown < analyze->top; shown++) {
		const struct log_analysis_process *process = &result->processes[shown];

		table_text(&table, log_reader_format_name(process->format));
		if (process->has_pid)
			table_format(&table, "%" PRIu32, process->pid);
		else
			table_text(&table, "?");
		table_format(&table, "%" PRIu64, process->allocs);
		table_format(&table, "%" PRIu64, process->frees);
		if (process->has_frees) {
			table_format(&table, "%" PRIu64, process->leaks);
			table_text(&table, text_size(process->leaked_bytes, size));
		} else {
			table_text(&table, "?");
			table_text(&table, "?");
		}
		table_format(&table, "%" PRIu64, process->found[LOG_ANALYSIS_DOUBLE_FREE]);
		table_format(&table, "%" PRIu64, process->found[LOG_ANALYSIS_UNKNOWN_FREE]);
		table_text(&table, process->has_ended ? "yes" : "no");
	}
	table_end(&table);
	print_more(result->process_count, shown);
}

static void print_pid(const struct log_analysis_process *process)
{
	if (process->has_pid)
		printf(", pid %" PRIu32, process->pid);
}

static void print_place(const struct analyze *analyze, uint32_t file, uint64_t line)
{
	if (analyze->file_count > 1) {
		putchar(' ');
		text_put(stdout, analyze->files[file].path);
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
	const struct log_analysis_result *result = &analyze->result;
	const char *type = types_name(leak->type);
	char size[TEXT_NUMBER_SIZE];

	printf("  %10s  0x%" PRIx64 " on device %" PRIu32, text_size(leak->size, size),
	       leak->address, leak->device);
	if (type)
		printf(", %s", type);
	print_pid(&result->processes[leak->process]);
	if (leak->refs > 1)
		printf(", %" PRIu32 " references", leak->refs);
	fputs(", allocated in", stdout);
	print_place(analyze, leak->file, leak->line);
	putchar('\n');
	print_stack(analyze_stack(analyze, leak->site), "              ");
}

static void print_leaks(const struct analyze *analyze, enum log_analysis_how how, uint64_t count,
			uint64_t bytes)
{
	const struct log_analysis_result *result = &analyze->result;
	char size[TEXT_NUMBER_SIZE];
	uint64_t shown = 0;

	if (count == 0)
		return;
	printf("\n%s: %" PRIu64 " buffer%s, %s\n",
	       how == LOG_ANALYSIS_PROCESS_ENDED ? "Left by processes that ended"
						 : "Not freed when the log ends",
	       count, plural(count), text_size(bytes, size));
	for (size_t i = 0; i < result->leak_count && shown < analyze->top; i++) {
		if (result->leaks[i].how != how)
			continue;
		print_leak(analyze, &result->leaks[i]);
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
	};

	return words[cause];
}

static void print_finding(const struct analyze *analyze, const struct log_analysis_finding *finding)
{
	const char *type = types_name(finding->type);

	printf("  0x%" PRIx64 " on device %" PRIu32, finding->address, finding->device);
	if (type)
		printf(", %s", type);
	print_pid(&analyze->result.processes[finding->process]);
	if (finding->size)
		printf(", %" PRIu64 " bytes", finding->size);
	if (finding->other_size)
		printf(", then %" PRIu64, finding->other_size);
	putchar(',');
	print_place(analyze, finding->file, finding->line);
	if (finding->count > 1) {
		printf(", %" PRIu64 " times until", finding->count);
		print_place(analyze, finding->last_file, finding->last_line);
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
	for (size_t i = 0; i < analyze->result.finding_count && rows < analyze->top; i++) {
		const struct log_analysis_finding *finding = &analyze->result.findings[i];

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
		const struct log_analysis_site *site = analyze->sites[i];
		const char *type = types_name(site->type);

		printf("  %s in %" PRIu64 " allocation%s%s%s, %" PRIu64 " freed",
		       text_size(site->bytes, size), site->allocs, plural(site->allocs),
		       type ? " of " : "", type ? type : "", site->frees);
		if (site->replaced)
			printf(", %" PRIu64 " replaced", site->replaced);
		printf(", %s left\n", text_size(site->leaked_bytes, left));
		print_stack(site->stack, "      ");
	}
	print_more(count, analyze->top);
}

static void print_notes(const struct analyze *analyze)
{
	const struct log_analysis_result *result = &analyze->result;
	const struct analyze_totals *totals = &analyze->totals;
	char size[TEXT_NUMBER_SIZE];

	if (totals->unnamed)
		printf("\nCircular buffers and kernels left (without addresses in the log): "
		       "%" PRIu64 ", about %s\n",
		       totals->unnamed, text_size(totals->unnamed_bytes, size));
	if (result->unseen)
		printf("\n%" PRIu64
		       " more buffers of ended processes were allocated before the log "
		       "began\n",
		       result->unseen);
	if (result->rejected)
		printf("\n%" PRIu64 " messages were refused by the server\n", result->rejected);
	if (result->merged)
		printf("\n%" PRIu64 " allocations were counted by the server as references to "
		       "another process's buffer\n",
		       result->merged);
	if (!result->is_exact)
		puts("\nnote: there is more in these logs than is kept: lists and causes may be "
		     "incomplete");
}

void analyze_print(const struct analyze *analyze)
{
	const struct analyze_totals *totals = &analyze->totals;
	uint64_t end = totals->leaks - totals->ended;
	uint64_t wrong = totals->leaks;

	for (size_t i = 0; i < LOG_ANALYSIS_KINDS; i++)
		wrong += totals->found[i];
	print_files(analyze);
	print_devices(analyze);
	print_processes(analyze);
	print_leaks(analyze, LOG_ANALYSIS_PROCESS_ENDED, totals->ended, totals->ended_bytes);
	print_leaks(analyze, LOG_ANALYSIS_END_OF_LOG, end,
		    totals->leaked_bytes - totals->ended_bytes);
	print_findings(analyze, LOG_ANALYSIS_DOUBLE_FREE, "Double frees");
	print_findings(analyze, LOG_ANALYSIS_UNKNOWN_FREE, "Unknown frees");
	print_findings(analyze, LOG_ANALYSIS_SIZE_CHANGE, "Size changes");
	print_sites(analyze);
	print_notes(analyze);
	if (totals->events == 0) {
		/* Why there are none is said once. */
		if (!analyze->is_doubted)
			puts("\nno events");
	} else if (wrong == 0 && totals->blind == 0) {
		puts("\nnothing was left, freed twice or freed without being known");
	} else if (wrong == 0 && totals->blind < totals->events) {
		puts("\nof what has frees in the log, nothing was left, freed twice or freed "
		     "without being known");
	}
}
