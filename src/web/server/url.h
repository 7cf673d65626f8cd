/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a request asks for: the path and the query parameters of its URL, parsed and checked. All of
 * it is untrusted; errors are explained in words that name the parameter.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/query.h"

#define URL_PARAMETERS_MAX 80u /* 64 devices and one of each other */
#define URL_LIMIT_DEFAULT 1000u
#define URL_PROBLEM_SIZE 256

struct url_pair {
	const char *key, *value;
};

struct url {
	char *text; /* owned; path and pairs point into it */
	const char *path;
	struct url_pair pairs[URL_PARAMETERS_MAX];
	size_t count;

	struct query query;             /* set by url_read(); points into the text, too */
	char problem[URL_PROBLEM_SIZE]; /* the last error */
};

/* Parses "/path?a=b&c=d". 0, -ENOMEM, or -EINVAL and a problem. @url must be zeroed. */
int url_parse(struct url *url, const char *text);
void url_deinit(struct url *url);

/* Reads the query; only the fields in @honoured may occur. 0, or -EINVAL and a problem. */
int url_read(struct url *url, uint32_t honoured);

/* The number in "/api/devices/N/stats". -EINVAL for any other path. */
int url_device_path(const char *path, uint32_t *ret_device);
