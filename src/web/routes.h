/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What can be asked for: each path, who may, with which parameters, and the function that answers. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "web/target.h"

struct web;

/* Which thread makes the answer. */
enum routes_lane {
	ROUTES_AT_ONCE, /* the one that serves the sockets: nothing that could wait */
	ROUTES_TOTALS,
	ROUTES_DETAILS,
	ROUTES_STREAM, /* no end: see stream.h */
	ROUTES_ASSET,  /* nothing to make: see assets.h */
};

/* One request, for the function that answers it. */
struct routes_ask {
	struct web *web;
	struct target *target;
	uint64_t arrived_ns; /* CLOCK_MONOTONIC */
	uint32_t device;     /* in the path */
	bool openmetrics;    /* is preferred */
};

struct route {
	const char *path;
	const char *type; /* of its content */
	const char *type_openmetrics;
	/*
	 * 0; -EINVAL and target->problem; -ENOENT; -EAGAIN: not at present; or another negative
	 * errno. What was written is then thrown away.
	 */
	int (*make)(struct routes_ask *ask, FILE *out);
	uint32_t parameters; /* enum target_parameter */
	enum routes_lane lane;
	bool guarded; /* needs the token */
};

#define ROUTES_JSON "application/json"

/* NULL: there is no such path. */
const struct route *routes_find(const char *path, uint32_t *ret_device);
