/* SPDX-License-Identifier: Apache-2.0 */

/* The verdict, and its text for people; run-json.c writes it for scripts. */

#include "cli/run/run-report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/text.h"
#include "cli/run/run-family.h"
#include "model/frames.h"
#include "model/merge.h"
#include "model/types.h"

#define REPORT_SITES 20 /* shown to people; scripts get all */
#define REPORT_STACKS 5 /* per site, likewise */

const char *report_label(const struct report *report, const struct report_site *site, char *buffer,
			 size_t size)
{
	const char *key = group_key(report->family->ended, GROUP_LABEL, &site->group, buffer, size);

	return key ? key : "(no name)";
}

const char *report_key(const struct report *report, const struct report_site *site, char *buffer,
		       size_t size)
{
	char label[REPORT_LABEL];

	(void)snprintf(buffer, size, "%s%s%s", report_label(report, site, label, sizeof(label)),
		       *site->calls ? ": " : "", site->calls);
	return buffer;
}

/* Texts of a snapshot are interned: they are equal if their addresses are. */
static int report_compare_labels(const struct group *a, const struct group *b)
{
	uintptr_t name = (uintptr_t)a->name, other_name = (uintptr_t)b->name;
	uintptr_t phase = (uintptr_t)a->phase, other_phase = (uintptr_t)b->phase;

	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	if (name != other_name)
		return name < other_name ? -1 : 1;
	return (phase > other_phase) - (phase < other_phase);
}

static int report_compare_calls(const void *left, const void *right)
{
	const struct report_stack *a = left, *b = right;
	int r = report_compare_labels(&a->group, &b->group);

	if (r == 0)
		r = strcmp(a->calls, b->calls);
	if (r == 0)
		r = (a->group.bytes < b->group.bytes) - (a->group.bytes > b->group.bytes);
	return r;
}

/* Largest first; then by what is shown, so that the order is stable. */
static int report_compare_sizes(const void *left, const void *right)
{
	const struct report_site *a = left, *b = right;
	const char *name = a->group.name ? a->group.name : "";
	int r = (a->group.bytes < b->group.bytes) - (a->group.bytes > b->group.bytes);

	if (r == 0)
		r = strcmp(name, b->group.name ? b->group.name : "");
	if (r == 0)
		r = strcmp(a->calls, b->calls);
	return r ? r : report_compare_labels(&a->group, &b->group);
}

static int report_take_stacks(struct report *report, uint32_t ignored)
{
	char calls[TEXT_CLEAN_SIZE(POOL_TEXT_MAX)];
	CLEANUP_FREE struct group *groups = NULL;
	size_t count;
	int r = group_buffers(report->family->ended, GROUP_SITE, false, &groups, &count);

	if (r < 0)
		return r;
	report->stacks = calloc(count + 1, sizeof(*report->stacks));
	report->sites = calloc(count + 1, sizeof(*report->sites));
	if (!report->stacks || !report->sites)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct report_stack *stack = &report->stacks[report->stack_count];

		if (ignored >> groups[i].type & 1) {
			report->ignored_buffers += groups[i].buffers;
			continue;
		}
		stack->group = groups[i];
		stack->calls = strdup(frames_calls(groups[i].stack, calls, sizeof(calls)));
		if (!stack->calls)
			return -ENOMEM;
		report->stack_count++;
	}
	return 0;
}

/* Adjacent stacks with the same type, name and calls form one site. */
static void report_add_up(struct report *report)
{
	struct report_site *site = NULL;

	for (size_t i = 0; i < report->stack_count; i++) {
		const struct report_stack *stack = &report->stacks[i];

		if (!site || report_compare_labels(&site->group, &stack->group) != 0 ||
		    strcmp(site->calls, stack->calls) != 0) {
			site = &report->sites[report->site_count++];
			*site = (struct report_site){
				.group = stack->group, .calls = stack->calls, .first = i};
			site->group.bytes = site->group.buffers = 0;
			site->group.stack = NULL;
		}
		site->count++;
		site->group.bytes = merge_add(site->group.bytes, stack->group.bytes);
		site->group.buffers += stack->group.buffers;
		report->leaked_bytes = merge_add(report->leaked_bytes, stack->group.bytes);
		report->leaked_buffers += stack->group.buffers;
	}
}

/* Sites of one label are adjacent here, too. */
static void report_add_up_labels(struct report *report)
{
	for (size_t first = 0, end; first < report->site_count; first = end) {
		uint64_t sum = 0;

		for (end = first; end < report->site_count &&
				  report_compare_labels(&report->sites[first].group,
							&report->sites[end].group) == 0;
		     end++)
			sum = merge_add(sum, report->sites[end].group.bytes);
		for (size_t i = first; i < end; i++)
			report->sites[i].label_bytes = sum;
	}
}

/*
 * A site is known if the baseline has it with its calls. If it has no stack, here or there, only
 * type and name identify it: then all sites with these are compared together.
 */
static bool report_is_known(const struct report *report, const struct report_site *site,
			    const struct baseline *baseline)
{
	char text[REPORT_KEY];

	if (baseline_bytes(baseline, report_key(report, site, text, sizeof(text))) >=
	    site->group.bytes)
		return true;
	if (baseline_bytes(baseline, report_label(report, site, text, sizeof(text))) >=
	    site->label_bytes)
		return true;
	return !*site->calls && baseline_label_bytes(baseline, &site->group) >= site->label_bytes;
}

int report_init(struct report *report, const struct family *family, uint32_t ignored,
		const struct baseline *baseline)
{
	int r;

	*report = (struct report){
		.family = family,
		.is_tracked = family->end_count > 0 || family->still_running > 0,
	};
	r = report_take_stacks(report, ignored);
	if (r < 0) {
		report_deinit(report);
		return r;
	}
	qsort(report->stacks, report->stack_count, sizeof(*report->stacks), report_compare_calls);
	report_add_up(report);
	report_add_up_labels(report);
	qsort(report->sites, report->site_count, sizeof(*report->sites), report_compare_sizes);
	for (size_t i = 0; i < report->site_count; i++) {
		struct report_site *site = &report->sites[i];

		site->known = baseline && report_is_known(report, site, baseline);
		if (!site->known) {
			report->new_bytes += site->group.bytes;
			report->new_buffers += site->group.buffers;
		}
	}
	return 0;
}

void report_deinit(struct report *report)
{
	for (size_t i = 0; i < report->stack_count; i++)
		free(report->stacks[i].calls);
	free(report->stacks);
	free(report->sites);
	*report = (struct report){0};
}

static void report_command(const struct report *report, FILE *out)
{
	for (char **word = report->argv; *word; word++) {
		(void)fputs(word == report->argv ? "" : " ", out);
		text_put(out, *word);
	}
}

static void report_ending(const struct report *report, FILE *out)
{
	int status = report->family->status;

	if (WIFSIGNALED(status))
		fprintf(out, "killed by signal %d (%s)", WTERMSIG(status),
			sigabbrev_np(WTERMSIG(status)));
	else
		fprintf(out, "exit code %d", WEXITSTATUS(status));
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
			fprintf(out, format, number, types_name(type), text_size(peak->bytes, size),
				peak->sampled ? " (several processes: at least)" : "");
#pragma GCC diagnostic pop
		}
	}
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
		fprintf(out, ", pid %" PRIu32 "\n", ended->processes[incident->process].pid);
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

const struct group *report_next_stack(const struct report *report, const struct report_site *site,
				      size_t *at)
{
	while (*at < site->count) {
		const struct group *group = &report->stacks[site->first + (*at)++].group;

		if (group->stack)
			return group;
	}
	return NULL;
}

static void report_text_stacks(const struct report *report, const struct report_site *site,
			       FILE *out)
{
	char plain[TEXT_CLEAN_SIZE(POOL_TEXT_MAX)];
	const struct group *stack;
	size_t at = 0;

	for (uint32_t shown = 0; shown < REPORT_STACKS; shown++) {
		stack = report_next_stack(report, site, &at);
		if (!stack)
			return;
		fprintf(out, "              %6" PRIu64 " from ", stack->buffers);
		text_put(out, frames_plain(stack->stack, plain, sizeof(plain)));
		fputc('\n', out);
	}
}

static void report_text_leaks(const struct report *report, FILE *out)
{
	char key[REPORT_LABEL], size[TEXT_NUMBER_SIZE];

	if (report->leaked_buffers == 0) {
		fprintf(out, "leaks: %s\n", report->is_tracked ? "none" : "not known");
		return;
	}
	fprintf(out, "leaks: %" PRIu64 " buffer%s, %s, at %zu call site%s\n",
		report->leaked_buffers, report->leaked_buffers == 1 ? "" : "s",
		text_size(report->leaked_bytes, size), report->site_count,
		report->site_count == 1 ? "" : "s");
	for (size_t i = 0; i < report->site_count && i < REPORT_SITES; i++) {
		const struct report_site *site = &report->sites[i];

		fprintf(out, "  %10s  %6" PRIu64 " %s  ", text_size(site->group.bytes, size),
			site->group.buffers, site->group.buffers == 1 ? "buffer " : "buffers");
		text_put(out, report_label(report, site, key, sizeof(key)));
		fprintf(out, "%s\n", site->known ? "  (in the baseline)" : "");
		report_text_stacks(report, site, out);
	}
	if (report->site_count > REPORT_SITES)
		fprintf(out, "  and %zu more call site%s; --json has all\n",
			report->site_count - REPORT_SITES,
			report->site_count - REPORT_SITES == 1 ? "" : "s");
}

void report_text(const struct report *report, FILE *out)
{
	const struct family *family = report->family;
	char duration[TEXT_NUMBER_SIZE];

	fprintf(out, "\nttmem run: ");
	report_command(report, out);
	fprintf(out, "\n");
	report_ending(report, out);
	fprintf(out, " after %s; processes with a book: %zu, without: %" PRIu32 "\n",
		text_duration(report->duration_ns, duration), family->end_count,
		family->without_book);
	if (!report->is_tracked)
		fprintf(out,
			"nothing was reported: does the program link libttmem, does it get as far "
			"as its first allocation, and does nothing in it set TTMEM=0? "
			"TTMEM_DEBUG=FILE shows every call\n");
	report_peaks(report, out, "peak: device %s %s %s%s\n");
	report_text_leaks(report, out);
	if (report->ignored_buffers)
		fprintf(out, "ignored: %" PRIu64 " buffer%s\n", report->ignored_buffers,
			report->ignored_buffers == 1 ? "" : "s");
	if (report_incident_count(report)) {
		fprintf(out, "incidents:\n");
		report_incidents(report, out);
	}
	if (family->still_running)
		fprintf(out, "still running, not judged: %" PRIu32 " processes\n",
			family->still_running);
	if (family->trouble)
		fprintf(out, "not everything could be watched: %s\n",
			strerrordesc_np(-family->trouble));
	if (family->refused)
		fprintf(out, "%" PRIu32 " books were refused: %s\n", family->refused,
			family->refused_reason);
}

/* A table cell: no bars, no line breaks, nothing that could be taken for a tag. */
static void report_cell(FILE *out, const char *text)
{
	char safe[TEXT_ESCAPE_SIZE(REPORT_KEY)];

	(void)text_escape(text, safe, sizeof(safe));
	for (const char *p = safe; *p; p++) {
		if (*p == '|' || *p == '<' || *p == '`')
			fprintf(out, "&#%d;", *p);
		else
			(void)fputc(*p, out);
	}
}

void report_markdown(const struct report *report, FILE *out)
{
	char key[REPORT_KEY], size[TEXT_NUMBER_SIZE];

	fprintf(out, "### ttmem: %s\n\n",
		report->new_buffers  ? "device memory was leaked"
		: report->is_tracked ? "no new leak"
				     : "nothing was tracked");
	fprintf(out, "`");
	report_command(report, out);
	fprintf(out, "`: ");
	report_ending(report, out);
	fprintf(out, ", %zu processes tracked, %" PRIu32 " without a book\n\n",
		report->family->end_count, report->family->without_book);
	if (report->site_count) {
		fprintf(out, "| leaked | buffers | call site | |\n|---:|---:|---|---|\n");
		for (size_t i = 0; i < report->site_count; i++) {
			const struct report_site *site = &report->sites[i];

			fprintf(out, "| %s | %" PRIu64 " | ", text_size(site->group.bytes, size),
				site->group.buffers);
			report_cell(out, report_key(report, site, key, sizeof(key)));
			fprintf(out, " | %s |\n", site->known ? "known" : "**new**");
		}
		fprintf(out, "\n");
	}
	fprintf(out, "| device | type | peak |\n|---:|---|---:|\n");
	report_peaks(report, out, "| %s | %s | %s%s |\n");
	if (report_incident_count(report))
		fprintf(out,
			"\n%zu incidents (double frees, unknown frees, size changes, failed "
			"allocations)\n",
			report_incident_count(report));
}
