/* SPDX-License-Identifier: Apache-2.0 */

/* Reads a baseline: the document that an earlier `ttmem run --json` wrote. */

#include "cli/run/run-report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "cli/common/run-report.h"
#include "model/merge.h"

struct baseline {
	json_t *sums[BASELINE_WHATS]; /* from keys to bytes */
};

const char *report_peak_key(uint32_t device, const char *type, char *buffer, size_t size)
{
	(void)snprintf(buffer, size, "%" PRIu32 " %s", device, type);
	return buffer;
}

static void baseline_add(struct baseline *baseline, enum baseline_what what, const char *key,
			 uint64_t bytes)
{
	uint64_t sum = merge_add(baseline_bytes(baseline, what, key), bytes);

	if (json_object_set_new(baseline->sums[what], key,
				json_integer((json_int_t)bits_min(sum, INT64_MAX))) < 0)
		must_end();
}

static const char *baseline_text(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

static uint64_t baseline_number(const json_t *row)
{
	json_int_t bytes = json_integer_value(json_object_get(row, "bytes"));

	return bytes > 0 ? (uint64_t)bytes : 0;
}

/* A row with a name (or phase) and bytes: a name of a site, or a whole site of an older file. */
static void baseline_add_label(struct baseline *baseline, const char *type, const json_t *row,
			       bool has_calls)
{
	char text[REPORT_LABEL];
	const char *label = has_calls ? NULL : baseline_text(row, "key");

	if (!label)
		label = report_label(type, baseline_text(row, "name"), baseline_text(row, "phase"),
				     text, sizeof(text));
	baseline_add(baseline, BASELINE_LABELS, label, baseline_number(row));
	if (!has_calls)
		baseline_add(baseline, BASELINE_BARE, label, baseline_number(row));
}

/*
 * Older files have "TYPE NAME: CALLS", "TYPE in PHASE: CALLS" or no calls as "site", and a site for
 * each name.
 */
static const char *baseline_old_calls(const json_t *leak, const char *type)
{
	const char *site = baseline_text(leak, "site"), *name = baseline_text(leak, "name");
	const char *phase = baseline_text(leak, "phase");
	char label[REPORT_LABEL];
	int n;

	if (!site)
		return "";
	n = snprintf(label, sizeof(label), "%s%s%s: ", type,
		     name    ? " "
		     : phase ? " in "
			     : "",
		     name    ? name
		     : phase ? phase
			     : "");
	if (n < 0 || (size_t)n >= sizeof(label) || strncmp(site, label, (size_t)n) != 0)
		return "";
	return site + n;
}

static void baseline_add_leak(struct baseline *baseline, const json_t *leak)
{
	const char *type = baseline_text(leak, "type"), *calls = baseline_text(leak, "calls");
	const json_t *names = json_object_get(leak, "names");
	char key[REPORT_KEY];

	if (!type)
		return;
	if (!calls)
		calls = baseline_old_calls(leak, type);
	if (*calls)
		baseline_add(baseline, BASELINE_SITES,
			     report_calls_key(type, calls, key, sizeof(key)),
			     baseline_number(leak));
	/* Without calls all names have one label, which is the key. */
	if (!names || !*calls)
		baseline_add_label(baseline, type, leak, *calls);
	for (size_t i = 0; *calls && i < json_array_size(names); i++)
		baseline_add_label(baseline, type, json_array_get(names, i), true);
}

/* A row without a device or a type is of no use, and is left out. */
static void baseline_add_peak(struct baseline *baseline, const json_t *peak)
{
	const json_t *device = json_object_get(peak, "device");
	const char *type = baseline_text(peak, "type");
	char key[REPORT_PEAK_KEY];

	if (!json_is_integer(device) || !type)
		return;
	report_peak_key((uint32_t)json_integer_value(device), type, key, sizeof(key));
	baseline_add(baseline, BASELINE_PEAKS, key, baseline_number(peak));
}

static void baseline_fill(struct baseline *baseline, const json_t *document)
{
	const json_t *leaks = json_object_get(document, "leaks");
	const json_t *peaks = json_object_get(document, "peaks");
	for (size_t i = 0; i < BASELINE_WHATS; i++)
		baseline->sums[i] = must_have(json_object());
	for (size_t i = 0; i < json_array_size(leaks); i++) {
		const json_t *leak = json_array_get(leaks, i);

		baseline_add_leak(baseline, leak);
		baseline_add(baseline, BASELINE_LEAKED, "", baseline_number(leak));
	}
	for (size_t i = 0; i < json_array_size(peaks); i++)
		baseline_add_peak(baseline, json_array_get(peaks, i));
}

static int baseline_fail(struct baseline *baseline, json_t *document, const char *why,
			 char *ret_error, size_t size)
{
	if (why)
		(void)snprintf(ret_error, size, "%s", why);
	json_decref(document);
	baseline_free(baseline);
	return -EINVAL;
}

int baseline_load(const char *path, struct baseline **ret_baseline, char *ret_error, size_t size)
{
	struct baseline *baseline = must_alloc(1, sizeof(*baseline));
	json_t *document = NULL, *leaks;
	const char *schema;

	if (run_report_read(path, "not JSON", &document, ret_error, size) < 0)
		return baseline_fail(baseline, document, NULL, ret_error, size);
	schema = baseline_text(document, "schema");
	leaks = json_object_get(document, "leaks");
	if (!schema || strcmp(schema, "ttmem.run/1") != 0 || !json_is_array(leaks))
		return baseline_fail(baseline, document,
				     "not a report of `ttmem run --json` (ttmem.run/1)", ret_error,
				     size);
	baseline_fill(baseline, document);
	json_decref(document);
	*ret_baseline = baseline;
	return 0;
}

void baseline_free(struct baseline *baseline)
{
	for (size_t i = 0; baseline && i < BASELINE_WHATS; i++)
		json_decref(baseline->sums[i]);
	free(baseline);
}

uint64_t baseline_bytes(const struct baseline *baseline, enum baseline_what what, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(baseline->sums[what], key));
}
