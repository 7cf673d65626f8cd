/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Answering one question, in the worker's thread: what native-server.c hands over, and gets back as packets. */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/registry/access.h"
#include "wire/http-request.h"
#include "wire/native.h"

struct native_answer;
struct native_config;
struct native_query;

/* A question, who asked it, and when it came (CLOCK_MONOTONIC). */
struct native_question {
	bool is_http;
	char target[HTTP_REQUEST_MAX]; /* of HTTP */
	struct native_request request; /* else */
	struct access_peer asker;
	uint64_t came_ns;
};

struct native_query *native_query_new(const struct native_config *config);
struct native_query *native_query_free(struct native_query *desk);

/* Builds the whole answer, its end included. */
void native_query_answer(struct native_query *desk, const struct native_question *question,
			 struct native_answer *answer);
