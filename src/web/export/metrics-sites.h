/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /metrics/sites: live bytes by call site. A path of its own, because it reads every buffer, and
 * because call sites are details that only some may see, while /metrics is for everybody.
 */

#include <stddef.h>
#include <stdio.h>

#include "web/export/exposition.h"

struct web_provider;

#define METRICS_SITES_DEFAULT 20u
#define METRICS_SITES_MAX 100u /* with rows of their own, whatever is asked for */

/*
 * The largest @wanted call sites, each on one device and of one type; all others are added up by
 * device and type, so that the sum over all rows is right. 0 or a negative errno.
 */
int metrics_sites_write(const struct web_provider *provider, size_t wanted,
			enum exposition_format format, FILE *out);
