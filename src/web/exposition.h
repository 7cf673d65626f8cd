/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Metrics as text: Prometheus 0.0.4 or OpenMetrics 1.0.0. The two differ in how counters are declared,
 * in units and in how the text ends; whoever writes metrics need not know. A family is declared, then
 * its samples follow: begin, labels, value.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum exposition_type {
	EXPOSITION_GAUGE,
	EXPOSITION_COUNTER, /* its samples end in _total */
};

struct exposition {
	FILE *out;
	bool openmetrics;
	const char *name; /* of the current family */
	enum exposition_type type;
	bool labelled; /* the current sample has one */
};

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
