/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a caller wants to see of a snapshot. An empty filter accepts everything. */

#include <stdbool.h>
#include <stdint.h>

#define FILTER_DEVICES_MAX 64u

/* A device by its number (0 to 1023) or by its unique id. */
struct filter_device {
	bool by_id;
	uint64_t value;
};

struct filter {
	const char *user; /* name or number; NULL = all */
	uint32_t pid;     /* 0 = all */
	uint32_t type;
	bool has_type;
	uint32_t device_count; /* 0 = all */
	struct filter_device devices[FILTER_DEVICES_MAX];
};

bool filter_wants_pid(const struct filter *filter, uint32_t pid);
bool filter_wants_type(const struct filter *filter, uint32_t type);
bool filter_wants_user(const struct filter *filter, const char *name, uint32_t id);
bool filter_wants_device(const struct filter *filter, uint32_t device, uint64_t unique_id);

/* "3", or "0x1f2e..." for a unique id. -EINVAL for neither, -ENOSPC beyond FILTER_DEVICES_MAX. */
int filter_add_device(struct filter *filter, const char *text);
