/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers one request in the worker's thread: native-server.c hands it over and gets packets back.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/registry/access.h"
#include "wire/http-request.h"
#include "wire/native.h"

struct native_answer;
struct native_config;
struct native_query;

/* A request, who sent it, and when it arrived (CLOCK_MONOTONIC). */
struct native_question {
	bool is_http;
	char target[HTTP_REQUEST_MAX]; /* if is_http */
	struct native_request request; /* otherwise */
	struct access_peer asker;
	uint64_t came_ns;
};

struct native_query *native_query_new(const struct native_config *config);
struct native_query *native_query_free(struct native_query *query);

/* Builds the whole answer, including its last packet. */
void native_query_answer(struct native_query *query, const struct native_question *question,
			 struct native_answer *answer);
