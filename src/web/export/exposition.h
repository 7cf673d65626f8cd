/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes metrics as Prometheus text 0.0.4, OpenMetrics 1.0.0 or OTLP JSON, so that callers need not
 * know the differences. A family is declared, then its samples follow: begin, labels, value.
 * exposition_start() comes first and exposition_end() last.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/emit.h"

enum exposition_format {
	EXPOSITION_TEXT,
	EXPOSITION_OPENMETRICS,
	EXPOSITION_OTLP, /* an ExportMetricsServiceRequest */
};

enum exposition_type {
	EXPOSITION_GAUGE,
	EXPOSITION_COUNTER, /* its samples end in _total */
};

struct exposition_attribute {
	const char *name, *value;
};

/* For OTLP: the sender and the time. */
struct exposition_origin {
	const char *host;
	const char *version;
	const struct exposition_attribute *attributes; /* override our own of the same name */
	size_t attribute_count;
	uint64_t start_ns; /* when counters started */
	uint64_t time_ns;
};

struct exposition {
	FILE *out;
	enum exposition_format format;
	const struct exposition_origin *origin; /* borrowed; NULL for text formats */

	/* Private. */
	struct emit json;
	const char *name; /* of the current family; NULL = none yet */
	enum exposition_type type;
	bool labelled; /* the current sample has a label */
};

bool exposition_has_attribute(const struct exposition_attribute *list, size_t count,
			      const char *name);

void exposition_start(struct exposition *to);

/* @name is without _total; if @unit is given, it ends in that. */
void exposition_family(struct exposition *to, const char *name, enum exposition_type type,
		       const char *unit, const char *help);

void exposition_begin(struct exposition *to);
void exposition_label(struct exposition *to, const char *key, const char *value); /* any UTF-8 */
void exposition_label_u64(struct exposition *to, const char *key, uint64_t value);
void exposition_u64(struct exposition *to, uint64_t value);
void exposition_seconds(struct exposition *to, uint64_t ns);
void exposition_milli(struct exposition *to, int64_t thousandths);

/* A family of one sample without labels. */
void exposition_one(struct exposition *to, const char *name, enum exposition_type type,
		    uint64_t value, const char *help);

void exposition_end(struct exposition *to);
