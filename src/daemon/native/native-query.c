/* SPDX-License-Identifier: Apache-2.0 */

/* Turns a request into the packets of its answer, in the worker's thread. */

#include "daemon/native/native-query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/native/native-answer.h"
#include "daemon/native/native-driver-memory.h"
#include "daemon/native/native-list.h"
#include "daemon/native/native-regions.h"
#include "daemon/native/native-server.h"
#include "model/query.h"
#include "web/server/local-request.h"
#include "web/server/web.h"

struct native_query {
	const struct native_config *config;
	char buffer[NATIVE_PACKET_MAX]; /* of the response being written */
};

struct native_query *native_query_new(const struct native_config *config)
{
	struct native_query *query = calloc(1, sizeof(*query));

	if (!query)
		return NULL;
	query->config = config;
	return query;
}

struct native_query *native_query_free(struct native_query *query)
{
	if (!query)
		return NULL;
	free(query);
	return NULL;
}

/* The body is written first: only then are its length and the status known. */
static void native_query_http(struct native_query *query, const struct native_question *question,
			      struct native_answer *answer)
{
	const struct query_asker asker = {
		.peer = &question->asker,
		.peer_size = sizeof(question->asker),
		.user_id = question->asker.uid,
		.is_stranger = question->asker.is_stranger,
		.sees_all = question->asker.sees_all,
		.came_ns = question->came_ns,
	};
	struct local_request_answer told = {0};
	FILE *stream = native_answer_open(answer, query->buffer);

	if (stream) {
		local_request_serve(query->config->provider, &asker, question->target, stream,
				    &told);
		(void)fclose(stream); /* the answer has recorded write errors */
	} else {
		told = (struct local_request_answer){500, "Internal Server Error", "text/plain",
						     "no memory"};
	}
	native_answer_end_http(answer, &told);
}

static int native_query_recording(const struct native_hooks *hooks,
				  const struct native_question *question,
				  struct native_answer *answer)
{
	char name[sizeof(question->request.old)];
	int file;

	memcpy(name, question->request.old, sizeof(name));
	if (!memchr(name, '\0', sizeof(name)))
		return -ENOENT;
	file = hooks->recording(hooks->context, name, &question->asker);
	return file < 0 ? file : native_answer_put_file_consume(answer, file);
}

void native_query_answer(struct native_query *query, const struct native_question *question,
			 struct native_answer *answer)
{
	int r = -EOPNOTSUPP; /* from an older command that does not use HTTP yet */

	if (question->is_http) {
		native_query_http(query, question, answer);
		return;
	}
	if (question->request.kind == NATIVE_LIST)
		r = native_list_put(&query->config->hooks, &question->request, question->came_ns,
				    &question->asker, answer);
	if (question->request.kind == NATIVE_REGIONS)
		r = native_regions_put(&query->config->hooks, question->came_ns, answer);
	if (question->request.kind == NATIVE_DRIVER_MEMORY)
		r = native_driver_memory_put(&query->config->hooks, question->came_ns, answer);
	if (question->request.kind == NATIVE_OPENERS)
		r = native_openers_put(&query->config->hooks, question->came_ns, answer);
	if (question->request.kind == NATIVE_RECORDING)
		r = native_query_recording(&query->config->hooks, question, answer);
	native_answer_end(answer, r);
}
