/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of an analysis: processes, call sites, devices, findings, leaks. */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "legacy/analyze/log-analysis-private.h"

struct log_analysis_process *log_analysis_rows_process(struct log_analysis *analysis,
						       const struct log_reader_event *event)
{
	uint64_t pid = (uint64_t)event->pid << 1 | event->has_pid;
	uint32_t number = map_find(&analysis->process_numbers, event->format, pid);
	struct log_analysis_process *process;

	if (number)
		return analysis->processes[number - 1];
	if (analysis->process_count >= LOG_ANALYSIS_PROCESSES_MAX) {
		analysis->is_inexact = true;
		return analysis->processes[0]; /* with the first, and not told apart any more */
	}
	process = must_alloc(1, sizeof(*process));
	process->number = must_number(&analysis->process_numbers, event->format, pid);
	process->pid = event->pid;
	process->has_pid = event->has_pid;
	process->has_frees = log_reader_format_has_frees(event->format);
	process->format = event->format;
	TAILQ_INIT(&process->live);
	analysis->processes =
		must_grown(analysis->processes, &analysis->process_capacity,
			   analysis->process_count + 1, sizeof(struct log_analysis_process *));
	analysis->processes[analysis->process_count++] = process;
	return process;
}

struct log_analysis_site *log_analysis_rows_site(struct log_analysis *analysis,
						 const struct log_reader_event *event)
{
	struct log_analysis_site *site;
	const char *stack;
	uint32_t number;

	if (!event->stack)
		return &analysis->no_site;
	if (analysis->texts.count >= LOG_ANALYSIS_SITES_MAX ||
	    analysis->text_bytes >= LOG_ANALYSIS_TEXT_MAX) {
		analysis->is_inexact = true;
		return &analysis->no_site;
	}
	stack = must_have(pool_long_text(&analysis->texts, event->stack, event->stack_length));
	number = must_number(&analysis->site_numbers, (uintptr_t)stack,
			     event->type << 2 | event->format);
	if (number <= analysis->site_count)
		return analysis->sites[number - 1];
	analysis->text_bytes += strlen(stack);
	site = must_alloc(1, sizeof(*site));
	*site = (struct log_analysis_site){
		.stack = stack,
		.number = number,
		.format = event->format,
		.sum.type = event->type,
	};
	analysis->sites = must_grown(analysis->sites, &analysis->site_capacity, number,
				     sizeof(struct log_analysis_site *));
	analysis->sites[analysis->site_count++] = site;
	return site;
}

struct log_analysis_device *log_analysis_rows_device(struct log_analysis *analysis, uint32_t format,
						     uint32_t number)
{
	struct log_analysis_device **devices = analysis->devices, *device;
	bool is_new = true;

	if (devices[format * BOOK_DEVICES + number])
		return devices[format * BOOK_DEVICES + number];
	for (size_t i = 0; i < LOG_READER_FORMATS; i++)
		is_new &= !devices[i * BOOK_DEVICES + number];
	if (is_new && analysis->seen_device_count < LOG_ANALYSIS_ELSEWHERE)
		analysis->seen_devices[analysis->seen_device_count++] = number;
	device = must_alloc(1, sizeof(*device));
	device->format = format;
	device->number = number;
	device->has_frees = log_reader_format_has_frees(format);
	for (uint32_t type = 0; type < LOG_ANALYSIS_TYPES; type++)
		device->sums[type].type = type;
	devices[format * BOOK_DEVICES + number] = device;
	return device;
}

struct log_analysis_sum *log_analysis_rows_sum(struct log_analysis *analysis,
					       const struct log_analysis_node *node)
{
	return &log_analysis_rows_device(analysis, node->process->format, node->device)
			->sums[node->type];
}

/* The number of a key, which is only added if there is room. */
static uint32_t rows_number(struct map *map, uint64_t a, uint64_t b, bool has_room)
{
	return has_room ? must_number(map, a, b) : map_find(map, a, b);
}

void log_analysis_rows_find(struct log_analysis *analysis,
			    const struct log_analysis_finding *finding)
{
	bool has_room = analysis->finding_count < LOG_ANALYSIS_FINDINGS_MAX;
	uint32_t what = finding->type << 16 | finding->kind << 8 | finding->cause;
	uint32_t process = finding->process->number;
	struct log_analysis_finding *row;
	uint64_t place, sizes;
	uint32_t number;

	log_analysis_rows_device(analysis, finding->format, finding->device)
		->sums[finding->type]
		.found[finding->kind] += finding->count;
	analysis->processes[process - 1]->sum.found[finding->kind] += finding->count;
	place = rows_number(&analysis->finding_places, (uint64_t)process << 32 | finding->device,
			    what, has_room);
	sizes = rows_number(&analysis->finding_sizes, finding->size, finding->other_size, has_room);
	number = place && sizes ? rows_number(&analysis->finding_numbers, finding->address,
					      place << 32 | sizes, has_room)
				: 0;
	if (!number) {
		analysis->dropped++;
		return;
	}
	must_grow(analysis->findings, &analysis->finding_capacity, number);
	row = &analysis->findings[number - 1];
	if (number > analysis->finding_count) {
		analysis->finding_count++;
		*row = *finding;
	} else {
		row->count += finding->count;
		row->last_line = finding->line;
		row->last_path = finding->path;
	}
}

void log_analysis_rows_report(struct log_analysis *analysis,
			      const struct log_analysis_finding *finding)
{
	if (analysis->report_count >= LOG_ANALYSIS_FINDINGS_MAX) {
		analysis->is_inexact = true;
		return;
	}
	must_grow(analysis->reports, &analysis->report_capacity, analysis->report_count + 1);
	analysis->reports[analysis->report_count++] = *finding;
}

void log_analysis_rows_find_reported(struct log_analysis *analysis)
{
	for (size_t i = 0; i < analysis->report_count; i++) {
		if (!analysis->reports[i].process->has_events)
			log_analysis_rows_find(analysis, &analysis->reports[i]);
	}
}

void log_analysis_rows_leak(struct log_analysis *analysis, const struct log_analysis_node *node,
			    enum log_analysis_how how)
{
	struct log_analysis_sum *sums[] = {log_analysis_rows_sum(analysis, node),
					   &node->process->sum, &node->site->sum};

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
		sums[i]->leaks++;
		sums[i]->leaked_bytes += node->size;
	}
	if (analysis->leak_count >= LOG_ANALYSIS_LEAKS_MAX) {
		analysis->dropped++;
		return;
	}
	must_grow(analysis->leaks, &analysis->leak_capacity, analysis->leak_count + 1);
	analysis->leaks[analysis->leak_count++] = (struct log_analysis_leak){
		.process = node->process,
		.site = node->site,
		.path = analysis->paths[node->file],
		.address = node->address,
		.size = node->size,
		.line = node->line,
		.file = node->file,
		.refs = node->refs,
		.device = node->device,
		.type = node->type,
		.format = node->process->format,
		.how = how,
		.is_listed = node->is_listed,
	};
}

/* The largest first, then as they were made. */
static int rows_compare_leaks(const void *left, const void *right)
{
	const struct log_analysis_leak *a = left, *b = right;
	int r = bits_compare(b->size, a->size);

	if (r == 0)
		r = bits_compare(a->file, b->file);
	return r ? r : bits_compare(a->line, b->line);
}

static int rows_compare_findings(const void *left, const void *right)
{
	const struct log_analysis_finding *a = left, *b = right;
	int r = bits_compare(a->kind, b->kind);

	if (r == 0)
		r = bits_compare(a->file, b->file);
	return r ? r : bits_compare(a->line, b->line);
}

/* The most leaked first, then the most allocated, then as they were made. */
static int rows_compare_sites(const void *left, const void *right)
{
	const struct log_analysis_site *a = *(const struct log_analysis_site *const *)left;
	const struct log_analysis_site *b = *(const struct log_analysis_site *const *)right;
	int r = bits_compare(b->sum.leaked_bytes, a->sum.leaked_bytes);

	if (r == 0)
		r = bits_compare(b->sum.bytes, a->sum.bytes);
	return r ? r : bits_compare(a->number, b->number);
}

void log_analysis_rows_sort(struct log_analysis *analysis)
{
	if (analysis->leak_count > 0)
		qsort(analysis->leaks, analysis->leak_count, sizeof(*analysis->leaks),
		      rows_compare_leaks);
	if (analysis->finding_count > 0)
		qsort(analysis->findings, analysis->finding_count, sizeof(*analysis->findings),
		      rows_compare_findings);
	if (analysis->site_count > 0)
		qsort(analysis->sites, analysis->site_count, sizeof(struct log_analysis_site *),
		      rows_compare_sites);
}
