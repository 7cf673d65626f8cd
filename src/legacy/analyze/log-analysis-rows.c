/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of an analysis: processes, call sites, devices, findings, leaks. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/hash.h"
#include "legacy/analyze/log-analysis-private.h"

int log_analysis_rows_process(struct log_analysis *analysis, const struct log_reader_event *event,
			      uint32_t *ret_row)
{
	struct map *numbers = &analysis->process_numbers;
	uint64_t pid = (uint64_t)event->pid << 1 | event->has_pid;
	uint32_t number = map_find(numbers, event->format, pid);
	struct log_analysis_process *rows;

	if (number) {
		*ret_row = number - 1;
		return 0;
	}
	if (analysis->process_count >= LOG_ANALYSIS_PROCESSES_MAX) {
		*ret_row = 0; /* with the first, and not told apart any more */
		analysis->is_inexact = true;
		return 0;
	}
	rows = array_grow(analysis->processes, &analysis->process_capacity,
			  analysis->process_count + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	analysis->processes = rows;
	if (map_add(numbers, event->format, pid, &number) < 0)
		return -ENOMEM;
	rows[analysis->process_count] = (struct log_analysis_process){
		.pid = event->pid,
		.has_pid = event->has_pid,
		.has_frees = log_reader_format_has_frees(event->format),
		.format = event->format,
		.live = LOG_ANALYSIS_NONE,
	};
	*ret_row = (uint32_t)analysis->process_count++;
	return 0;
}

int log_analysis_rows_site(struct log_analysis *analysis, const struct log_reader_event *event,
			   uint32_t *ret_row)
{
	struct log_analysis_site site = {.type = event->type, .format = event->format};
	struct log_analysis_site *rows;
	uint32_t number;
	size_t texts;

	*ret_row = LOG_ANALYSIS_NONE;
	if (!event->stack)
		return 0;
	if (analysis->texts.count >= LOG_ANALYSIS_SITES_MAX ||
	    analysis->text_bytes >= LOG_ANALYSIS_TEXT_MAX) {
		analysis->is_inexact = true;
		return 0;
	}
	texts = analysis->texts.count;
	site.stack = pool_long_text(&analysis->texts, event->stack, event->stack_length);
	if (!site.stack)
		return -ENOMEM;
	if (analysis->texts.count > texts)
		analysis->text_bytes += strlen(site.stack);
	rows = array_grow(analysis->sites, &analysis->site_capacity, analysis->site_count + 1,
			  sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	analysis->sites = rows;
	if (map_add(&analysis->site_numbers, (uintptr_t)site.stack, site.type << 2 | site.format,
		    &number) < 0)
		return -ENOMEM;
	if (number > analysis->site_count)
		rows[analysis->site_count++] = site;
	*ret_row = number - 1;
	return 0;
}

int log_analysis_rows_device(struct log_analysis *analysis, const struct log_reader_event *event,
			     struct log_analysis_device **ret_device)
{
	struct log_analysis_device **device = &analysis->devices[event->format][event->device];
	bool is_new = true;

	if (!*device) {
		for (size_t i = 0; i < LOG_READER_FORMATS; i++)
			is_new &= !analysis->devices[i][event->device];
		*device = calloc(1, sizeof(**device));
		if (!*device)
			return -ENOMEM;
		(*device)->format = event->format;
		(*device)->number = event->device;
		(*device)->has_frees = log_reader_format_has_frees(event->format);
		for (uint32_t type = 0; type < LOG_ANALYSIS_TYPES; type++)
			(*device)->sums[type].type = type;
		if (is_new && analysis->seen_device_count < LOG_ANALYSIS_ELSEWHERE)
			analysis->seen_devices[analysis->seen_device_count++] = event->device;
	}
	*ret_device = *device;
	return 0;
}

static bool rows_same_finding(const struct log_analysis_finding *a,
			      const struct log_analysis_finding *b)
{
	return a->address == b->address && a->process == b->process && a->device == b->device &&
	       a->type == b->type && a->kind == b->kind && a->cause == b->cause &&
	       a->size == b->size && a->other_size == b->other_size;
}

int log_analysis_rows_find(struct log_analysis *analysis,
			   const struct log_analysis_finding *finding)
{
	uint64_t place = (uint64_t)finding->process << 32 | finding->device << 16 |
			 finding->type << 8 | finding->kind << 4 | finding->cause;
	uint64_t sizes = hash_fold(hash_fold(finding->size ^ HASH_K0, analysis->seed | 1) ^
					   finding->other_size,
				   analysis->seed ^ HASH_K1);
	struct log_analysis_finding *rows;
	uint32_t number;

	analysis->devices[finding->format][finding->device]
		->sums[finding->type]
		.found[finding->kind]++;
	analysis->processes[finding->process].found[finding->kind]++;
	for (sizes ^= finding->address;; sizes++) {
		number = map_find(&analysis->finding_numbers, sizes, place);
		if (!number || rows_same_finding(&analysis->findings[number - 1], finding))
			break;
	}
	if (!number) {
		if (analysis->finding_count >= LOG_ANALYSIS_FINDINGS_MAX) {
			analysis->dropped++;
			return 0;
		}
		rows = array_grow(analysis->findings, &analysis->finding_capacity,
				  analysis->finding_count + 1, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		analysis->findings = rows;
		if (map_add(&analysis->finding_numbers, sizes, place, &number) < 0)
			return -ENOMEM;
		rows[analysis->finding_count++] = *finding;
	}
	rows = &analysis->findings[number - 1];
	rows->count++;
	rows->last_line = finding->line;
	rows->last_file = finding->file;
	return 0;
}

int log_analysis_rows_leak(struct log_analysis *analysis, const struct log_analysis_node *node,
			   enum log_analysis_how how)
{
	struct log_analysis_process *process = &analysis->processes[node->process];
	struct log_analysis_sum *sum =
		&analysis->devices[process->format][node->device]->sums[node->type];
	struct log_analysis_leak *rows;

	sum->leaks++;
	sum->leaked_bytes += node->size;
	process->leaks++;
	process->leaked_bytes += node->size;
	if (node->site != LOG_ANALYSIS_NONE) {
		analysis->sites[node->site].leaks++;
		analysis->sites[node->site].leaked_bytes += node->size;
	}
	if (analysis->leak_count >= LOG_ANALYSIS_LEAKS_MAX) {
		analysis->dropped++;
		return 0;
	}
	rows = array_grow(analysis->leaks, &analysis->leak_capacity, analysis->leak_count + 1,
			  sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	analysis->leaks = rows;
	rows[analysis->leak_count++] = (struct log_analysis_leak){
		.address = node->address,
		.size = node->size,
		.line = node->line,
		.process = node->process,
		.site = node->site,
		.refs = node->refs,
		.device = node->device,
		.file = node->file,
		.type = node->type,
		.format = process->format,
		.how = how,
	};
	return 0;
}

static int rows_compare(uint64_t a, uint64_t b)
{
	return bits_compare(a, b);
}

/* The largest first, then as they were made. */
static int rows_compare_leaks(const void *left, const void *right)
{
	const struct log_analysis_leak *a = left, *b = right;
	int r = rows_compare(b->size, a->size);

	if (r == 0)
		r = rows_compare(a->file, b->file);
	return r ? r : rows_compare(a->line, b->line);
}

static int rows_compare_findings(const void *left, const void *right)
{
	const struct log_analysis_finding *a = left, *b = right;
	int r = rows_compare(a->kind, b->kind);

	if (r == 0)
		r = rows_compare(a->file, b->file);
	return r ? r : rows_compare(a->line, b->line);
}

void log_analysis_rows_sort(struct log_analysis *analysis)
{
	if (analysis->leak_count > 0)
		qsort(analysis->leaks, analysis->leak_count, sizeof(*analysis->leaks),
		      rows_compare_leaks);
	if (analysis->finding_count > 0)
		qsort(analysis->findings, analysis->finding_count, sizeof(*analysis->findings),
		      rows_compare_findings);
}

void log_analysis_rows_deinit(struct log_analysis *analysis)
{
	map_deinit(&analysis->process_numbers);
	map_deinit(&analysis->site_numbers);
	map_deinit(&analysis->finding_numbers);
	for (size_t i = 0; i < LOG_READER_FORMATS; i++) {
		for (size_t j = 0; j < BOOK_DEVICES; j++)
			free(analysis->devices[i][j]);
	}
	free(analysis->processes);
	free(analysis->sites);
	free(analysis->findings);
	free(analysis->leaks);
	pool_deinit(&analysis->texts);
}
