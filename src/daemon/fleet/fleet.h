/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The other machines that run ttmemd: asked for one row each, all at once, while somebody looks.
 *
 * They are named in the settings, or found through a Prometheus, which is trusted to say where to
 * ask. Everything that they answer is hostile: it is bounded, and only numbers are taken from it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "source/fleet/host-url.h"

struct document;
struct emit;
struct fleet;

#define FLEET_TEXT_MAX ((size_t)64 << 10)      /* an answer; a row has about 500 bytes */
#define FLEET_PROMETHEUS_MAX ((size_t)4 << 20) /* the answer of Prometheus */
#define FLEET_FRESH_S 5u                       /* younger answers are given again */

struct fleet_config {
	const char *hosts;      /* a list, checked; NULL = none */
	const char *prometheus; /* its URL; NULL = none */
	const char *token;      /* for it; NULL = none */
};

/* 0 or a negative errno. */
int fleet_new(struct fleet **ret_fleet, const struct fleet_config *config);
struct fleet *fleet_free(struct fleet *fleet);

extern const struct document fleet_answer;

/*
 * Writes ttmem.fleet/1. Takes as long as the slowest host, twelve seconds at most, or until @stop is
 * set; so it needs a thread of its own, always the same. 0 or a negative errno.
 */
int fleet_document(struct fleet *fleet, const bool *stop, struct emit *json);
