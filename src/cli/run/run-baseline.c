/* SPDX-License-Identifier: Apache-2.0 */

/* Reads a baseline: the document that an earlier `ttmem run --json` wrote. */

#include "cli/run/run-report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "cli/common/must.h"
#include "cli/common/run-report.h"
#include "model/merge.h"
#include "model/types.h"

struct baseline {
	struct pool texts; /* equal keys have equal pointers */
	struct map keys;   /* by text and enum baseline_what */
	uint64_t *sums;    /* of bytes, a row for each key */
	size_t capacity;
};

const char *report_peak_key(uint32_t device, const char *type, char *buffer, size_t size)
{
	(void)snprintf(buffer, size, "%" PRIu32 " %s", device, type);
	return buffer;
}

static uint64_t *baseline_sum(struct baseline *baseline, enum baseline_what what, const char *key)
{
	const char *text = must_have(pool_long_text(&baseline->texts, key, strlen(key)));
	uint32_t before = baseline->keys.count;
	uint32_t number = must_number(&baseline->keys, (uintptr_t)text, what);

	must_grow(baseline->sums, &baseline->capacity, number);
	if (number > before)
		baseline->sums[number - 1] = 0;
	return &baseline->sums[number - 1];
}

struct baseline *baseline_new(void)
{
	return must_alloc(1, sizeof(struct baseline));
}

void baseline_add(struct baseline *baseline, enum baseline_what what, const char *key,
		  uint64_t bytes)
{
	uint64_t *sum = baseline_sum(baseline, what, key);

	*sum = merge_add(*sum, bytes);
}

uint64_t baseline_bytes(struct baseline *baseline, enum baseline_what what, const char *key)
{
	return *baseline_sum(baseline, what, key);
}

/* A name of a site, or a whole site of an older file. */
static void baseline_add_label(struct baseline *baseline, const char *label, uint64_t bytes,
			       bool has_calls)
{
	baseline_add(baseline, BASELINE_LABELS, label, bytes);
	if (!has_calls)
		baseline_add(baseline, BASELINE_BARE, label, bytes);
}

/*
 * Older files have "TYPE NAME: CALLS", "TYPE in PHASE: CALLS" or no calls as "site", and a site for
 * each name.
 */
static const char *baseline_old_calls(const struct run_report_leak *leak, const char *type)
{
	const char *name = leak->names.name, *phase = leak->phase;
	char label[REPORT_LABEL];
	int n;

	if (!leak->old_site)
		return "";
	n = snprintf(label, sizeof(label), "%s%s%s: ", type,
		     name    ? " "
		     : phase ? " in "
			     : "",
		     name    ? name
		     : phase ? phase
			     : "");
	if (n < 0 || (size_t)n >= sizeof(label) || strncmp(leak->old_site, label, (size_t)n) != 0)
		return "";
	return leak->old_site + n;
}

static void baseline_add_leak(struct baseline *baseline, const struct run_report_leak *leak)
{
	const struct site_names *names = &leak->names;
	const char *type = types_name(leak->type), *calls = leak->calls, *label;
	char key[REPORT_KEY], text[REPORT_LABEL];

	baseline_add(baseline, BASELINE_LEAKED, "", leak->bytes);
	if (!type)
		return;
	if (!calls)
		calls = baseline_old_calls(leak, type);
	if (*calls)
		baseline_add(baseline, BASELINE_SITES,
			     report_calls_key(type, calls, key, sizeof(key)), leak->bytes);
	/* Without calls all names have one label, which is the key. */
	if (!names->listed || !*calls) {
		label = *calls ? NULL : leak->key;
		if (!label)
			label = report_label(type, names->name, leak->phase, text, sizeof(text));
		baseline_add_label(baseline, label, leak->bytes, *calls);
		return;
	}
	for (size_t i = 0; i < names->listed; i++) {
		const struct call_site *name = &names->names[i];

		baseline_add_label(baseline,
				   report_label(type, name->name, name->phase, text, sizeof(text)),
				   name->bytes, true);
	}
}

static void baseline_fill(struct baseline *baseline, const struct run_report *report)
{
	char key[REPORT_PEAK_KEY];

	for (size_t i = 0; i < report->leak_count; i++)
		baseline_add_leak(baseline, &report->leaks[i]);
	/* A row without a type is of no use, and is left out. */
	for (size_t i = 0; i < report->peak_count; i++) {
		const struct run_report_peak *peak = &report->peaks[i];
		const char *type = types_name(peak->type);

		if (type)
			baseline_add(baseline, BASELINE_PEAKS,
				     report_peak_key(peak->device, type, key, sizeof(key)),
				     peak->bytes);
	}
}

int baseline_load(const char *path, struct baseline **ret_baseline, char *ret_error, size_t size)
{
	struct run_report report;

	if (run_report_read(path, "not JSON", &report, ret_error, size) < 0)
		return -EINVAL;
	if (!run_report_is_one(&report) || !report.has_leaks) {
		(void)snprintf(ret_error, size, "not a report of `ttmem run --json` (ttmem.run/1)");
		run_report_unload(&report);
		return -EINVAL;
	}
	*ret_baseline = baseline_new();
	baseline_fill(*ret_baseline, &report);
	run_report_unload(&report);
	return 0;
}

void baseline_free(struct baseline *baseline)
{
	if (!baseline)
		return;
	free(baseline->sums);
	map_deinit(&baseline->keys);
	pool_deinit(&baseline->texts);
	free(baseline);
}
