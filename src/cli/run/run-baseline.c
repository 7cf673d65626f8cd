/* SPDX-License-Identifier: Apache-2.0 */

/* Reads a baseline: the document that an earlier `ttmem run --json` wrote. */

#include "cli/run/run-report.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/merge.h"
#include "model/types.h"

struct baseline {
	json_t *document;
	json_t *leaks; /* owned by the document */
};

int baseline_load(const char *path, struct baseline **ret_baseline, char *ret_error, size_t size)
{
	struct baseline *baseline = calloc(1, sizeof(*baseline));
	json_error_t error;
	const char *schema;

	if (!baseline)
		return -ENOMEM;
	baseline->document = json_load_file(path, 0, &error);
	if (!baseline->document) {
		if (error.line > 0)
			(void)snprintf(ret_error, size, "line %d: %s", error.line, error.text);
		else
			(void)snprintf(ret_error, size, "cannot be read");
		baseline_free(baseline);
		return -EINVAL;
	}
	schema = json_string_value(json_object_get(baseline->document, "schema"));
	baseline->leaks = json_object_get(baseline->document, "leaks");
	if (!schema || strcmp(schema, "ttmem.run/1") != 0 || !json_is_array(baseline->leaks)) {
		(void)snprintf(ret_error, size, "not a report of `ttmem run --json` (ttmem.run/1)");
		baseline_free(baseline);
		return -EINVAL;
	}
	*ret_baseline = baseline;
	return 0;
}

void baseline_free(struct baseline *baseline)
{
	if (baseline)
		json_decref(baseline->document);
	free(baseline);
}

static bool baseline_is_text(const json_t *leak, const char *key, const char *text)
{
	const char *value = json_string_value(json_object_get(leak, key));

	return value && text ? strcmp(value, text) == 0 : !value && !text;
}

uint64_t baseline_label_bytes(const struct baseline *baseline, const struct group *label)
{
	size_t count = json_array_size(baseline->leaks);
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		const json_t *leak = json_array_get(baseline->leaks, i);
		json_int_t bytes = json_integer_value(json_object_get(leak, "bytes"));

		if (bytes > 0 && baseline_is_text(leak, "type", types_name(label->type)) &&
		    baseline_is_text(leak, "name", label->name) &&
		    baseline_is_text(leak, "phase", label->phase))
			sum = merge_add(sum, (uint64_t)bytes);
	}
	return sum;
}

uint64_t baseline_bytes(const struct baseline *baseline, const char *key)
{
	size_t count = json_array_size(baseline->leaks);

	for (size_t i = 0; i < count; i++) {
		json_t *leak = json_array_get(baseline->leaks, i);
		const char *site = json_string_value(json_object_get(leak, "site"));
		json_int_t bytes = json_integer_value(json_object_get(leak, "bytes"));

		if (site && strcmp(site, key) == 0 && bytes > 0)
			return (uint64_t)bytes;
	}
	return 0;
}
