/* SPDX-License-Identifier: Apache-2.0 */

/* The verdict, and its text for people; run-json.c writes it for scripts. */

#include "cli/run/run-report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "answers/document.h"
#include "answers/peak.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"
#include "cli/budget/budget-output.h"
#include "cli/common/must.h"
#include "cli/common/peak-text.h"
#include "cli/common/session.h"
#include "cli/run/run-family.h"
#include "model/sites/site-rows.h"
#include "model/sites/stack.h"
#include "model/types.h"

#define REPORT_SITES 20 /* shown to people; scripts get all */
#define REPORT_STACKS 5 /* per site, likewise */
#define REPORT_NAMES 5  /* likewise */
#define REPORT_PEAK_SITES 5

static void report_command(const struct report *report, FILE *out)
{
	for (char **word = report->argv; *word; word++) {
		(void)fputs(word == report->argv ? "" : " ", out);
		text_put(out, *word);
	}
}

static void report_ending(const struct report *report, FILE *out)
{
	const struct ending *command = &report->family->command;
	int number = ending_signal(command);

	if (number)
		fprintf(out, "killed by signal %d (%s)", number, sigabbrev_np(number));
	else
		fprintf(out, "exit code %d", WEXITSTATUS(command->status));
}

static const char *report_bound(const struct family_peak *peak)
{
	return peak->is_bound ? "≥ " : "";
}

/* One line per device and type used. */
static void report_peaks(const struct report *report, FILE *out, const char *format)
{
	char size[TEXT_NUMBER_SIZE];

	for (uint32_t device = 0; device < BOOK_DEVICES; device++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct family_peak *peak = &report->family->peak[device][type];
			char number[16];

			if (peak->processes == 0 || peak->bytes == 0)
				continue;
			(void)snprintf(number, sizeof(number), "%" PRIu32, device);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			fprintf(out, format, number, types_name(type), report_bound(peak),
				text_size(peak->bytes, size),
				peak->sampled ? " (several processes: at least)" : "");
#pragma GCC diagnostic pop
		}
	}
}

/* What was live at the peaks of one process. Without memory for it, it is left out. */
static void report_live_at(const struct snapshot *top, FILE *out)
{
	const struct peak_text text = {
		.out = out, .indent = "  ", .rows = REPORT_PEAK_SITES, .is_over = true};
	CLEANUP(peak_list_deinit) struct peak_list peaks = PEAK_LIST_NULL;

	if (peak_list_add(&peaks, top, NULL, GROUP_SITE) == 0)
		peak_text_put(&text, &peaks);
}

/* For each device and type, in the process that held the most. */
static void report_live_at_peaks(const struct report *report, FILE *out)
{
	const struct run_peaks *peaks = &report->family->peaks;

	if (peaks->count > 0)
		fprintf(out, "live at the peak:\n");
	for (size_t i = 0; i < peaks->count; i++)
		report_live_at(peaks->tops[i], out);
}

static void report_incidents(const struct report *report, FILE *out)
{
	const struct snapshot *ended = report->family->ended;
	size_t shown = 0;

	for (size_t i = 0; i < ended->incident_count; i++) {
		const struct snapshot_incident *incident = &ended->incidents[i];
		const char *type = types_name(incident->type);

		if (strcmp(incident->kind, "leak") == 0 || shown++ >= REPORT_SITES)
			continue;
		fprintf(out, "  %s on device %" PRIu32 ", %s", incident->kind, incident->device,
			type ? type : "type unknown");
		if (incident->has_address)
			fprintf(out, " at 0x%" PRIx64, incident->address);
		if (incident->size)
			fprintf(out, ", %" PRIu64 " bytes", incident->size);
		if (incident->first.name) {
			(void)fputs(", ", out);
			text_put(out, incident->first.name);
		}
		if (incident->count > 1)
			fprintf(out, " (%" PRIu64 " times)", incident->count);
		fprintf(out, ", pid %" PRIu32 "\n", ended->processes[incident->process].id.pid);
	}
	if (shown > REPORT_SITES)
		fprintf(out, "  and %zu more\n", shown - REPORT_SITES);
}

static size_t report_incident_count(const struct report *report)
{
	const struct snapshot *ended = report->family->ended;
	size_t count = 0;

	for (size_t i = 0; i < ended->incident_count; i++)
		count += strcmp(ended->incidents[i].kind, "leak") != 0;
	return count;
}

static void report_text_stacks(const struct report_site *site, FILE *out)
{
	char plain[STACK_LINE];

	for (size_t i = 0; i < site->stacks.count && i < REPORT_STACKS; i++) {
		const struct call_site *stack = &site->stacks.groups[i];

		if (!stack->stack)
			continue;
		fprintf(out, "              %6" PRIu64 " from ", stack->buffers);
		text_put(out, stack_plain(stack->stack, true, plain, sizeof(plain)));
		fputc('\n', out);
	}
}

/* The names of a site that has several, the largest first. */
static void report_text_names(const struct report_site *site, FILE *out)
{
	size_t count = site->sum.name_count;

	for (size_t i = 0; count > 1 && i < count && i <= REPORT_NAMES; i++) {
		const char *name = site->sum.names[i].name;

		(void)fputs(i ? ", " : "              named ", out);
		if (i == REPORT_NAMES)
			fprintf(out, "and %zu more", count - i);
		else
			text_put(out, name ? name : "(no name)");
	}
	if (count > 1)
		fputc('\n', out);
}

void report_rows(const struct report *report, struct site_rows *ret_rows)
{
	*ret_rows = SITE_ROWS_NULL;
	for (size_t i = 0; i < report->site_count; i++)
		site_rows_add_stack(ret_rows, report->sites[i].stacks.groups[0].stack);
	site_rows_finish(ret_rows);
}

/* Its type and names, and its line of code. */
static void report_put_site(const struct report_site *site, const char *place, FILE *out)
{
	char text[REPORT_KEY];

	text_put(out, call_site_label(report_group(site), text, sizeof(text)));
	if (*place) {
		(void)fputs(" at ", out);
		text_put(out, place);
	}
}

static void report_text_leaks(const struct report *report, FILE *out)
{
	CLEANUP(site_rows_deinit) struct site_rows rows = SITE_ROWS_NULL;
	char size[TEXT_NUMBER_SIZE];

	if (report->leaked_buffers == 0) {
		fprintf(out, "leaks: %s\n",
			report->is_tracked && !report->family->gave_up ? "none" : "not known");
		return;
	}
	fprintf(out, "leaks: %s%" PRIu64 " buffer%s, %s, at %zu call site%s\n",
		report->family->gave_up ? "at least " : "", report->leaked_buffers,
		report->leaked_buffers == 1 ? "" : "s", text_size(report->leaked_bytes, size),
		report->site_count, report->site_count == 1 ? "" : "s");
	report_rows(report, &rows);
	for (size_t i = 0; i < report->site_count && i < REPORT_SITES; i++) {
		const struct report_site *site = &report->sites[i];

		fprintf(out, "  %10s  %6" PRIu64 " %s  ",
			text_size(report_group(site)->bytes, size), report_group(site)->buffers,
			report_group(site)->buffers == 1 ? "buffer " : "buffers");
		report_put_site(site, site_rows_text(&rows, i), out);
		fprintf(out, "%s\n", site->known ? "  (in the baseline)" : "");
		report_text_names(site, out);
		report_text_stacks(site, out);
	}
	if (report->site_count > REPORT_SITES)
		fprintf(out, "  and %zu more call site%s; --json has all\n",
			report->site_count - REPORT_SITES,
			report->site_count - REPORT_SITES == 1 ? "" : "s");
	session_find_tip(&rows);
}

/* What the history of a process has forgotten cannot be judged. */
static void report_text_forgotten(const struct snapshot *ended, FILE *out)
{
	for (size_t i = 0; i < ended->note_count; i++) {
		if (!strstr(ended->notes[i], TYPES_HELD_INCOMPLETE))
			continue;
		(void)fputs("note: ", out);
		text_put(out, ended->notes[i]);
		(void)fputc('\n', out);
	}
}

/* "2 processes tracked, 1 not" */
static void report_tracked(const struct report *report, const char *before, FILE *out)
{
	const struct family *family = report->family;

	fprintf(out, "%s%zu process%s tracked", before, family->end_count,
		family->end_count == 1 ? "" : "es");
	if (family->untracked)
		fprintf(out, ", %" PRIu32 " that use%s a device or tt-metal not", family->untracked,
			family->untracked == 1 ? "s" : "");
}

void report_text(const struct report *report, FILE *out)
{
	const struct family *family = report->family;
	char duration[TEXT_NUMBER_SIZE];

	fprintf(out, "\nttmem run: ");
	report_command(report, out);
	fprintf(out, "\n");
	report_ending(report, out);
	fprintf(out, " after %s", text_duration(report->duration_ns, duration));
	report_tracked(report, "; ", out);
	(void)fputc('\n', out);
	if (!report->is_tracked)
		fprintf(out,
			"nothing was reported. %s Does it reach its first allocation? Does "
			"something set TTMEM=0? TTMEM_DEBUG=FILE shows every call.\n",
			report->has_shim ? "Does the program use tt-metal or ttnn, 0.62 or newer?"
					 : "Does the program link libttmem, or use tt-metal and "
					   "run with --metal?");
	if (family->gave_up) {
		fprintf(out, "tracking gave up in process %" PRIu32 ": ", family->gave_up_pid);
		text_put(out, family->gave_up);
		(void)fputs("; from then on nothing was recorded\n", out);
	}
	report_peaks(report, out, "peak: device %s %s %s%s%s\n");
	report_live_at_peaks(report, out);
	budget_put_text(report->limits, true, out);
	report_text_leaks(report, out);
	if (report->held_buffers)
		fprintf(out, "held when a device was closed: %" PRIu64 " buffer%s, %s\n",
			report->held_buffers, report->held_buffers == 1 ? "" : "s",
			text_size(report->held_bytes, duration));
	if (report->ignored_buffers)
		fprintf(out, "ignored: %" PRIu64 " buffer%s\n", report->ignored_buffers,
			report->ignored_buffers == 1 ? "" : "s");
	if (report_incident_count(report)) {
		fprintf(out, "incidents:\n");
		report_incidents(report, out);
	}
	run_failed_put(&family->failed, out);
	report_text_forgotten(family->ended, out);
	if (family->still_running)
		fprintf(out, "still running, so not judged: %" PRIu32 " process%s\n",
			family->still_running, family->still_running == 1 ? "" : "es");
	if (family->trouble)
		fprintf(out, "not everything could be watched: %s\n",
			strerrordesc_np(-family->trouble));
	if (family->refused)
		fprintf(out, "%" PRIu32 " book%s refused: %s\n", family->refused,
			family->refused == 1 ? " was" : "s were", family->refused_reason);
	session_print_tip(out);
}

/* The longest run of backticks. */
static size_t report_ticks(const char *text)
{
	size_t most = 0;

	for (; *text; text++) {
		size_t n = strspn(text, "`");

		most = bits_max(most, n);
		text += n - (n > 0);
	}
	return most;
}

/*
 * The command as code, in which Markdown reads nothing else: only a run of just as many backticks
 * ends it, so it stands between longer ones; the blanks inside belong to them.
 */
static void report_markdown_command(const struct report *report, FILE *out)
{
	CLEANUP_FREE char *text = NULL, *ticks = NULL;
	size_t length, most;
	FILE *memory = must_have(open_memstream(&text, &length));

	report_command(report, memory);
	if (fclose(memory) != 0)
		must_end();
	most = report_ticks(text) + 1;
	ticks = must_alloc(most + 1, 1);
	memset(ticks, '`', most);
	fprintf(out, most > 1 ? "%s %s %s: " : "%s%s%s: ", ticks, text, ticks);
}

/* A table cell: no bars, no line breaks, nothing that Markdown could take for anything but text. */
static void report_cell(FILE *out, const char *text)
{
	char safe[TEXT_ESCAPE_SIZE(REPORT_KEY)];

	(void)text_escape(text, safe, sizeof(safe));
	for (const char *p = safe; *p; p++) {
		if (strchr("|<`&*[~", *p))
			fprintf(out, "&#%d;", *p);
		else
			(void)fputc(*p, out);
	}
}

/* How a figure differs from the baseline's. */
static void report_change(FILE *out, uint64_t now, uint64_t base)
{
	uint64_t difference = now > base ? now - base : base - now;
	char size[TEXT_NUMBER_SIZE];

	if (difference == 0) {
		(void)fputs("same", out);
		return;
	}
	fprintf(out, "%s%s%s", now > base ? "**+" : "-", text_size(difference, size),
		now > base ? "**" : "");
	if (base > 0)
		fprintf(out, " (%+.1f %%)", 100.0 * ((double)now - (double)base) / (double)base);
}

/* Peaks beside those of the baseline; also those that only the baseline has. */
static void report_markdown_peaks(const struct report *report, FILE *out)
{
	char key[REPORT_PEAK_KEY], size[TEXT_NUMBER_SIZE];

	fprintf(out, "| device | type | peak | base | change |\n|---:|---|---:|---:|---:|\n");
	for (uint32_t device = 0; device < BOOK_DEVICES; device++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct family_peak *peak = &report->family->peak[device][type];
			uint64_t now = peak->processes ? peak->bytes : 0;
			uint64_t base = baseline_bytes(
				report->baseline, BASELINE_PEAKS,
				report_peak_key(device, types_name(type), key, sizeof(key)));

			if (now == 0 && base == 0)
				continue;
			fprintf(out, "| %" PRIu32 " | %s | %s%s%s | ", device, types_name(type),
				report_bound(peak), text_size(now, size),
				peak->sampled ? " (several processes: at least)" : "");
			fprintf(out, "%s | ", text_size(base, size));
			report_change(out, now, base);
			fprintf(out, " |\n");
		}
	}
}

/* What was leaked in all, beside the baseline. */
static void report_markdown_leaked(const struct report *report, FILE *out)
{
	uint64_t base = baseline_bytes(report->baseline, BASELINE_LEAKED, "");
	char size[TEXT_NUMBER_SIZE];

	fprintf(out, "leaked: %s, base ", text_size(report->leaked_bytes, size));
	fprintf(out, "%s: ", text_size(base, size));
	report_change(out, report->leaked_bytes, base);
	fprintf(out, "\n\n");
}

void report_markdown(const struct report *report, FILE *out)
{
	char key[REPORT_KEY], size[TEXT_NUMBER_SIZE];

	fprintf(out, "### ttmem: %s\n\n",
		report->new_buffers       ? "device memory was leaked"
		: report->limits->failed  ? "a memory limit was not kept"
		: report->held_buffers    ? "device memory was held when a device was closed"
		: report->family->gave_up ? "tracking gave up"
		: report->is_tracked      ? "no new leak"
					  : "nothing was tracked");
	report_markdown_command(report, out);
	report_ending(report, out);
	report_tracked(report, ", ", out);
	fprintf(out, "\n\n");
	if (report->site_count) {
		fprintf(out, "| leaked | buffers | call site | |\n|---:|---:|---|---|\n");
		for (size_t i = 0; i < report->site_count; i++) {
			const struct report_site *site = &report->sites[i];

			fprintf(out, "| %s | %" PRIu64 " | ",
				text_size(report_group(site)->bytes, size),
				report_group(site)->buffers);
			report_cell(out, call_site_label(report_group(site), key, sizeof(key)));
			if (*site->calls) {
				(void)fputs(": ", out);
				report_cell(out, site->calls);
			}
			fprintf(out, " | %s |\n", site->known ? "known" : "**new**");
		}
		fprintf(out, "\n");
	}
	if (report->baseline) {
		report_markdown_leaked(report, out);
		report_markdown_peaks(report, out);
	} else {
		fprintf(out, "| device | type | peak |\n|---:|---|---:|\n");
		report_peaks(report, out, "| %s | %s | %s%s%s |\n");
	}
	budget_put_markdown(report->limits, out);
	if (report_incident_count(report))
		fprintf(out,
			"\n%zu incidents (double frees, unknown frees, size changes, failed "
			"allocations)\n",
			report_incident_count(report));
}
