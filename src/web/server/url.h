/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a request asks for: the path and the query parameters of its first line, taken apart and
 * checked. Everything comes from outside; what is wrong is told in words, and names the parameter.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/filter.h"
#include "model/group.h"
#include "model/page-cursor.h"
#include "model/snapshot.h"

#define TARGET_PARAMETERS_MAX 80u /* 64 devices and one each of the others */
#define TARGET_LIMIT_DEFAULT 1000u
#define TARGET_LIMIT_MAX 10000u
#define TARGET_PROBLEM_SIZE 256
#define TARGET_KIND_MAX 32u
#define TARGET_KINDS "double_free, unknown_free, size_change, alloc_failed or leak"

/* Parameters that a route may take; names are in url.c. */
enum target_parameter {
	TARGET_PID = 1u << 0,
	TARGET_DEVICE = 1u << 1, /* may be repeated */
	TARGET_TYPE = 1u << 2,
	TARGET_SORT = 1u << 3,
	TARGET_BY = 1u << 4,
	TARGET_LIMIT = 1u << 5,
	TARGET_CURSOR = 1u << 6,
	TARGET_ADDRESS = 1u << 7,
	TARGET_KIND = 1u << 8,
	TARGET_SINCE = 1u << 9,
	TARGET_FROM = 1u << 10,
	TARGET_TO = 1u << 11,
	TARGET_STEP = 1u << 12,
	TARGET_TOKEN = 1u << 13,
	TARGET_SIZE = 1u << 14,
	TARGET_PAGE = 1u << 15,
	TARGET_ONLY = 1u << 16,
};

struct target_pair {
	const char *key, *value;
};

struct target {
	char *text; /* owned; path and pairs lie in it */
	const char *path;
	struct target_pair pairs[TARGET_PARAMETERS_MAX];
	size_t count;

	/* Of target_read(): */
	uint32_t given; /* which parameters were there */
	struct filter filter;
	enum snapshot_order order;
	enum group_kind by;
	size_t limit;
	const char *cursor;
	uint64_t address;
	const char *kind;
	uint64_t since_ns, from_ns, to_ns;
	uint32_t step_s;
	const char *token;
	uint64_t size, page_size;
	bool only_past;

	char problem[TARGET_PROBLEM_SIZE]; /* of the last failure */
};

/* Takes "/path?a=b&c=d" apart. 0, -ENOMEM, or -EINVAL and a problem. Fill with zeros before. */
int target_parse(struct target *target, const char *text);
void target_deinit(struct target *target);

/* Reads the parameters, of which only those in @allowed may be there. 0, or -EINVAL and a problem. */
int target_read(struct target *target, uint32_t allowed);

/* The number at the end of "/api/devices/N/stats". -EINVAL if it is no such path. */
int target_device_path(const char *path, uint32_t *ret_device);
