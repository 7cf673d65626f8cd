/* SPDX-License-Identifier: Apache-2.0 */

/* The grammar of the two text formats; exposition-otlp.c has that of OTLP. */

#include "web/export/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "web/export/exposition-otlp.h"

static const char *exposition_suffix(const struct exposition *to)
{
	return to->type == EXPOSITION_COUNTER ? "_total" : "";
}

bool exposition_has_attribute(const struct exposition_attribute *list, size_t count,
			      const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].name, name) == 0)
			return true;
	}
	return false;
}

void exposition_start(struct exposition *to)
{
	to->name = NULL;
	if (to->format == EXPOSITION_OTLP)
		exposition_otlp_start(to);
}

void exposition_family(struct exposition *to, const char *name, enum exposition_type type,
		       const char *unit, const char *help)
{
	bool openmetrics = to->format == EXPOSITION_OPENMETRICS;
	/* OpenMetrics declares the counter without the suffix of its samples. */
	const char *suffix = type == EXPOSITION_COUNTER && !openmetrics ? "_total" : "";
	const char *word = type == EXPOSITION_COUNTER ? "counter" : "gauge";

	if (to->format == EXPOSITION_OTLP) {
		exposition_otlp_family(to, name, type, unit, help);
		return;
	}
	to->name = name;
	to->type = type;
	fprintf(to->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
		word);
	if (openmetrics && unit)
		fprintf(to->out, "# UNIT %s %s\n", name, unit);
}

void exposition_begin(struct exposition *to)
{
	if (to->format == EXPOSITION_OTLP) {
		exposition_otlp_begin(to);
		return;
	}
	fprintf(to->out, "%s%s", to->name, exposition_suffix(to));
	to->labelled = false;
}

void exposition_label(struct exposition *to, const char *key, const char *value)
{
	if (to->format == EXPOSITION_OTLP) {
		exposition_otlp_label(to, key, value);
		return;
	}
	fprintf(to->out, "%c%s=\"", to->labelled ? ',' : '{', key);
	to->labelled = true;
	text_put_label(to->out, value);
	fputc('"', to->out);
}

void exposition_label_u64(struct exposition *to, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	exposition_label(to, key, text);
}

static void exposition_close_labels(struct exposition *to)
{
	fputs(to->labelled ? "} " : " ", to->out);
}

void exposition_u64(struct exposition *to, uint64_t value)
{
	if (to->format == EXPOSITION_OTLP) {
		exposition_otlp_u64(to, value);
		return;
	}
	exposition_close_labels(to);
	fprintf(to->out, "%" PRIu64 "\n", value);
}

void exposition_seconds(struct exposition *to, uint64_t ns)
{
	if (to->format == EXPOSITION_OTLP) {
		exposition_otlp_seconds(to, ns);
		return;
	}
	exposition_close_labels(to);
	fprintf(to->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

void exposition_milli(struct exposition *to, int64_t thousandths)
{
	if (to->format == EXPOSITION_OTLP) {
		exposition_otlp_milli(to, thousandths);
		return;
	}
	exposition_close_labels(to);
	fprintf(to->out, "%.3f\n", (double)thousandths / 1000);
}

void exposition_one(struct exposition *to, const char *name, enum exposition_type type,
		    uint64_t value, const char *help)
{
	exposition_family(to, name, type, NULL, help);
	exposition_begin(to);
	exposition_u64(to, value);
}

void exposition_end(struct exposition *to)
{
	if (to->format == EXPOSITION_OPENMETRICS)
		fputs("# EOF\n", to->out);
	else if (to->format == EXPOSITION_OTLP)
		exposition_otlp_end(to);
}
