/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * OTLP JSON: metrics written through exposition.c, and the envelope that all such messages share.
 * 64-bit numbers are strings in it.
 */

#include <stdint.h>

#include "web/export/exposition.h"

void exposition_otlp_start(struct exposition *to);
void exposition_otlp_family(struct exposition *to, const char *name, enum exposition_type type,
			    const char *unit, const char *help);
void exposition_otlp_begin(struct exposition *to);
void exposition_otlp_label(struct exposition *to, const char *key, const char *value);
void exposition_otlp_u64(struct exposition *to, uint64_t value);
void exposition_otlp_seconds(struct exposition *to, uint64_t ns);
void exposition_otlp_milli(struct exposition *to, int64_t thousandths);
void exposition_otlp_end(struct exposition *to);

/*
 * Also used for logs: the members "resource" (the sender) and "scope" (the program), one attribute
 * (with a text, or a number), a number.
 */
void exposition_otlp_resource(struct emit *json, const struct exposition_origin *origin);
void exposition_otlp_scope(struct emit *json, const struct exposition_origin *origin);
void exposition_otlp_attribute(struct emit *json, const char *key, const char *value);
void exposition_otlp_attribute_number(struct emit *json, const char *key, uint64_t value);
void exposition_otlp_number(struct emit *json, const char *key, uint64_t value);
