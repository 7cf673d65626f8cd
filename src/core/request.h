/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is wanted of a snapshot. Totals are always given. */

#include <stdbool.h>
#include <stdint.h>

#include "core/filter.h"

struct source_request {
	bool buffers;
	bool incidents;
	struct filter filter; /* for buffers and incidents; totals are never filtered */
};
