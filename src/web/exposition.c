/* SPDX-License-Identifier: Apache-2.0 */

/* The grammar of both formats. */

#include "web/exposition.h"

#include <inttypes.h>

#define NS_PER_S UINT64_C(1000000000)

static const char *exposition_suffix(const struct exposition *to)
{
	return to->type == EXPOSITION_COUNTER ? "_total" : "";
}

void exposition_family(struct exposition *to, const char *name, enum exposition_type type,
		       const char *unit, const char *help)
{
	/* OpenMetrics declares the counter without the suffix of its samples. */
	const char *suffix = type == EXPOSITION_COUNTER && !to->openmetrics ? "_total" : "";
	const char *word = type == EXPOSITION_COUNTER ? "counter" : "gauge";

	to->name = name;
	to->type = type;
	fprintf(to->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, suffix, help, name, suffix,
		word);
	if (to->openmetrics && unit)
		fprintf(to->out, "# UNIT %s %s\n", name, unit);
}

void exposition_begin(struct exposition *to)
{
	fprintf(to->out, "%s%s", to->name, exposition_suffix(to));
	to->labelled = false;
}

void exposition_label(struct exposition *to, const char *key, const char *value)
{
	fprintf(to->out, "%c%s=\"", to->labelled ? ',' : '{', key);
	to->labelled = true;
	for (; *value; value++) {
		switch (*value) {
		case '\\':
		case '"':
			fputc('\\', to->out);
			fputc(*value, to->out);
			break;
		case '\n':
			fputs("\\n", to->out);
			break;
		default:
			fputc(*value, to->out);
		}
	}
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
	exposition_close_labels(to);
	fprintf(to->out, "%" PRIu64 "\n", value);
}

void exposition_seconds(struct exposition *to, uint64_t ns)
{
	exposition_close_labels(to);
	fprintf(to->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
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
	if (to->openmetrics)
		fputs("# EOF\n", to->out);
}
