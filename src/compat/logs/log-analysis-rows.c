/* SPDX-License-Identifier: Apache-2.0 */

/* The rows of an analysis: processes, call sites, devices, findings, leaks. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/hash.h"
#include "compat/logs/log-analysis-private.h"

typedef bool (*rows_same)(const struct log_analysis *analysis, uint32_t row, const void *key);

static int rows_grow(struct log_analysis_lookup *lookup)
{
	size_t capacity = lookup->capacity ? lookup->capacity * 2 : 64;
	uint32_t *slots = malloc(capacity * sizeof(*slots));
	uint32_t *hashes = malloc(capacity * sizeof(*hashes));

	if (!slots || !hashes) {
		free(slots);
		free(hashes);
		return -ENOMEM;
	}
	for (size_t i = 0; i < capacity; i++)
		slots[i] = LOG_ANALYSIS_NONE;
	for (size_t i = 0; i < lookup->capacity; i++) {
		size_t at = lookup->hashes[i] & (capacity - 1);

		if (lookup->slots[i] == LOG_ANALYSIS_NONE)
			continue;
		while (slots[at] != LOG_ANALYSIS_NONE)
			at = (at + 1) & (capacity - 1);
		slots[at] = lookup->slots[i];
		hashes[at] = lookup->hashes[i];
	}
	free(lookup->slots);
	free(lookup->hashes);
	lookup->slots = slots;
	lookup->hashes = hashes;
	lookup->capacity = capacity;
	return 0;
}

/* The row of @key, or LOG_ANALYSIS_NONE and the place where its number belongs. */
static int rows_find(const struct log_analysis *analysis, struct log_analysis_lookup *lookup,
		     uint32_t hash, const void *key, rows_same same, size_t *ret_at)
{
	size_t at;

	if (lookup->count >= lookup->capacity / 2 && rows_grow(lookup) < 0)
		return -ENOMEM;
	at = hash & (lookup->capacity - 1);
	while (lookup->slots[at] != LOG_ANALYSIS_NONE &&
	       !(lookup->hashes[at] == hash && same(analysis, lookup->slots[at], key)))
		at = (at + 1) & (lookup->capacity - 1);
	*ret_at = at;
	return 0;
}

static void rows_enter(struct log_analysis_lookup *lookup, size_t at, uint32_t hash, size_t row)
{
	lookup->slots[at] = (uint32_t)row;
	lookup->hashes[at] = hash;
	lookup->count++;
}

static uint32_t rows_hash(const struct log_analysis *analysis, uint64_t a, uint64_t b)
{
	return (uint32_t)hash_fold(hash_fold(a ^ HASH_K0, analysis->seed | 1) ^ b,
				   analysis->seed ^ HASH_K1);
}

static bool rows_same_process(const struct log_analysis *analysis, uint32_t row, const void *key)
{
	const struct log_analysis_process *process = &analysis->processes[row];
	const struct log_reader_event *event = key;

	return process->format == event->format && process->has_pid == event->has_pid &&
	       process->pid == event->pid;
}

int log_analysis_rows_process(struct log_analysis *analysis, const struct log_reader_event *event,
			      uint32_t *ret_row)
{
	uint32_t hash =
		rows_hash(analysis, event->format, (uint64_t)event->pid << 1 | event->has_pid);
	struct log_analysis_lookup *lookup = &analysis->process_lookup;
	struct log_analysis_process *rows;
	size_t at;

	if (rows_find(analysis, lookup, hash, event, rows_same_process, &at) < 0)
		return -ENOMEM;
	if (lookup->slots[at] != LOG_ANALYSIS_NONE) {
		*ret_row = lookup->slots[at];
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
	rows[analysis->process_count] = (struct log_analysis_process){
		.pid = event->pid,
		.has_pid = event->has_pid,
		.format = event->format,
		.live = LOG_ANALYSIS_NONE,
	};
	rows_enter(lookup, at, hash, analysis->process_count);
	*ret_row = (uint32_t)analysis->process_count++;
	return 0;
}

static bool rows_same_site(const struct log_analysis *analysis, uint32_t row, const void *key)
{
	const struct log_analysis_site *site = &analysis->sites[row], *other = key;

	return site->stack == other->stack && site->type == other->type &&
	       site->format == other->format;
}

int log_analysis_rows_site(struct log_analysis *analysis, const struct log_reader_event *event,
			   uint32_t *ret_row)
{
	struct log_analysis_site site = {.type = event->type, .format = event->format};
	struct log_analysis_lookup *lookup = &analysis->site_lookup;
	struct log_analysis_site *rows;
	size_t texts, at;
	uint32_t hash;

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
	hash = rows_hash(analysis, (uintptr_t)site.stack, site.type << 2 | site.format);
	if (rows_find(analysis, lookup, hash, &site, rows_same_site, &at) < 0)
		return -ENOMEM;
	if (lookup->slots[at] == LOG_ANALYSIS_NONE) {
		rows = array_grow(analysis->sites, &analysis->site_capacity,
				  analysis->site_count + 1, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		analysis->sites = rows;
		rows[analysis->site_count] = site;
		rows_enter(lookup, at, hash, analysis->site_count++);
	}
	*ret_row = lookup->slots[at];
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
		if (is_new && analysis->seen_device_count < LOG_ANALYSIS_ELSEWHERE)
			analysis->seen_devices[analysis->seen_device_count++] = event->device;
	}
	*ret_device = *device;
	return 0;
}

static bool rows_same_finding(const struct log_analysis *analysis, uint32_t row, const void *key)
{
	const struct log_analysis_finding *a = &analysis->findings[row], *b = key;

	return a->address == b->address && a->process == b->process && a->device == b->device &&
	       a->type == b->type && a->kind == b->kind && a->cause == b->cause &&
	       a->size == b->size && a->other_size == b->other_size;
}

int log_analysis_rows_find(struct log_analysis *analysis,
			   const struct log_analysis_finding *finding)
{
	uint64_t place = (uint64_t)finding->process << 32 | finding->device << 16 |
			 (uint32_t)finding->type << 8 | (uint32_t)finding->kind << 4 |
			 finding->cause;
	uint32_t hash = rows_hash(analysis, finding->address, place);
	struct log_analysis_lookup *lookup = &analysis->finding_lookup;
	struct log_analysis_finding *rows;
	size_t at;

	analysis->devices[finding->format][finding->device]
		->sums[finding->type]
		.found[finding->kind]++;
	analysis->processes[finding->process].found[finding->kind]++;
	if (rows_find(analysis, lookup, hash, finding, rows_same_finding, &at) < 0)
		return -ENOMEM;
	if (lookup->slots[at] == LOG_ANALYSIS_NONE) {
		if (analysis->finding_count >= LOG_ANALYSIS_FINDINGS_MAX) {
			analysis->dropped++;
			return 0;
		}
		rows = array_grow(analysis->findings, &analysis->finding_capacity,
				  analysis->finding_count + 1, sizeof(*rows));
		if (!rows)
			return -ENOMEM;
		analysis->findings = rows;
		rows[analysis->finding_count] = *finding;
		rows_enter(lookup, at, hash, analysis->finding_count++);
	}
	rows = &analysis->findings[lookup->slots[at]];
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
		.format = (uint8_t)process->format,
		.how = (uint8_t)how,
	};
	return 0;
}

static int rows_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
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

static void rows_deinit_lookup(struct log_analysis_lookup *lookup)
{
	free(lookup->slots);
	free(lookup->hashes);
}

void log_analysis_rows_deinit(struct log_analysis *analysis)
{
	rows_deinit_lookup(&analysis->process_lookup);
	rows_deinit_lookup(&analysis->site_lookup);
	rows_deinit_lookup(&analysis->finding_lookup);
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
