/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Metrics, written out: as Prometheus text 0.0.4, as OpenMetrics 1.0.0, or as the JSON of OTLP. They differ
 * in everything but the idea; whoever writes metrics need not know. A family is declared, then its
 * samples follow: begin, labels, value. exposition_start() comes first and exposition_end() last.
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

/* Of OTLP: who says this, and when. */
struct exposition_origin {
	const char *host;
	const char *version;
	const struct exposition_attribute *attributes; /* these go before our own of that name */
	size_t attribute_count;
	uint64_t start_ns; /* since when counters count */
	uint64_t time_ns;
};

struct exposition {
	FILE *out;
	enum exposition_format format;
	const struct exposition_origin *origin; /* lent; NULL for texts */

	/* Private. */
	struct emit json;
	const char *name; /* of the current family; NULL = none yet */
	enum exposition_type type;
	bool labelled; /* the current sample has one */
};

bool exposition_has_attribute(const struct exposition_attribute *list, size_t count,
			      const char *name);

void exposition_start(struct exposition *to);

/* @name is without _total; if there is a @unit, it ends in that. */
void exposition_family(struct exposition *to, const char *name, enum exposition_type type,
		       const char *unit, const char *help);

void exposition_begin(struct exposition *to);
void exposition_label(struct exposition *to, const char *key, const char *value); /* any UTF-8 */
void exposition_label_u64(struct exposition *to, const char *key, uint64_t value);
void exposition_u64(struct exposition *to, uint64_t value);
void exposition_seconds(struct exposition *to, uint64_t ns);

/* A family of one sample without labels. */
void exposition_one(struct exposition *to, const char *name, enum exposition_type type,
		    uint64_t value, const char *help);

void exposition_end(struct exposition *to);
