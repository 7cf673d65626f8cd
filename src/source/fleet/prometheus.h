/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a Prometheus knows now about the machines that it scrapes. All of it may be anything. */

#include <stddef.h>
#include <stdint.h>

#include "source/fleet/http-fetch.h"

struct json_t;

struct prometheus_sample {
	/* Its name and other labels; "" = none. They live as long as the answer. */
	const char *name, *cluster, *instance, *device, *uid, *type;
	uint64_t value; /* 0 if it is invalid or negative */
};

struct prometheus {
	struct prometheus_sample *samples; /* in the order of the answer */
	size_t count;
	char problem[160]; /* why there is no answer, for people; "" = there is one */
	struct json_t *document;
};

/*
 * @url: of its page. @query: as in a URL. @token: NULL = none. 0, also if there is a problem, or -ENOMEM; deinit
 * it in any case.
 */
int prometheus_ask(struct prometheus *ret_answer, const char *url, const char *query,
		   const char *token, const struct http_fetch_limits *limits);

/* The text of an answer alone. 0, -EBADMSG or -ENOMEM, likewise. */
int prometheus_parse(struct prometheus *ret_answer, const char *text, size_t length);
void prometheus_deinit(struct prometheus *answer);
