/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a request asks for: the path and the query parameters of its URL, parsed and checked. All of
 * it is untrusted; errors are explained in words that name the parameter.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/filter.h"
#include "model/page-cursor.h"
#include "model/sites/group.h"
#include "model/snapshot.h"

#define URL_PARAMETERS_MAX 80u /* 64 devices and one of each other */
#define URL_LIMIT_DEFAULT 1000u
#define URL_LIMIT_MAX 10000u
#define URL_BUFFERS_MAX 1000000u
#define URL_PROBLEM_SIZE 256
#define URL_KIND_MAX 32u
#define URL_KINDS                                                                            \
	"double_free, unknown_free, size_change, alloc_failed, clash, trace_overlap, leak, " \
	"overlap or held_at_close"

/* Parameters that a route may take; names are in url.c. */
enum url_parameter {
	URL_PID = 1u << 0,
	URL_DEVICE = 1u << 1, /* may be repeated */
	URL_TYPE = 1u << 2,
	URL_SORT = 1u << 3,
	URL_BY = 1u << 4,
	URL_LIMIT = 1u << 5,
	URL_CURSOR = 1u << 6,
	URL_ADDRESS = 1u << 7,
	URL_KIND = 1u << 8,
	URL_SINCE = 1u << 9,
	URL_FROM = 1u << 10,
	URL_TO = 1u << 11,
	URL_STEP = 1u << 12,
	URL_TOKEN = 1u << 13,
	URL_SIZE = 1u << 14,
	URL_PAGE = 1u << 15,
	URL_ONLY = 1u << 16,
	URL_BUFFERS = 1u << 17,
	URL_BROWSER = 1u << 18,
	URL_AT = 1u << 19,
	URL_CHANGES = 1u << 20,
	URL_CORES = 1u << 21,
	URL_PER_BANK = 1u << 22,
};

struct url_pair {
	const char *key, *value;
};

struct url {
	char *text; /* owned; path and pairs point into it */
	const char *path;
	struct url_pair pairs[URL_PARAMETERS_MAX];
	size_t count;

	/* Set by url_read(): */
	uint32_t given; /* which parameters were present */
	struct filter filter;
	enum snapshot_order order;
	enum group_kind by;
	size_t limit;
	const char *cursor;
	uint64_t address;
	const char *kind;
	uint64_t since_ns, from_ns, to_ns, at_ns;
	uint32_t step_ms;
	const char *token;
	uint64_t size, page_size;
	uint64_t per_bank; /* that a buffer of that size takes; 0 = not given */
	uint32_t cores;    /* of a sharded buffer; 0 = not given */
	bool only_past;
	uint32_t buffers_max;
	uint32_t browser; /* id of a user */

	char problem[URL_PROBLEM_SIZE]; /* the last error */
};

/* Parses "/path?a=b&c=d". 0, -ENOMEM, or -EINVAL and a problem. @url must be zeroed. */
int url_parse(struct url *url, const char *text);
void url_deinit(struct url *url);

/* Reads the parameters; only those in @allowed may occur. 0, or -EINVAL and a problem. */
int url_read(struct url *url, uint32_t allowed);

/* The number in "/api/devices/N/stats". -EINVAL for any other path. */
int url_device_path(const char *path, uint32_t *ret_device);
