/* SPDX-License-Identifier: Apache-2.0 */

/* From a question to the packets of its answer; in the worker's thread. */

#include "daemon/native-desk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/emit.h"
#include "book/clock.h"
#include "core/document.h"
#include "daemon/native-answer.h"
#include "daemon/native-regions.h"
#include "daemon/native-roster.h"
#include "daemon/native.h"
#include "daemon/past-documents.h"
#include "store/store.h"
#include "web/web.h"

struct native_desk {
	const struct native_config *config;
	struct store_reader *past; /* opened when it is first needed */
};

struct native_desk *native_desk_new(const struct native_config *config)
{
	struct native_desk *desk = calloc(1, sizeof(*desk));

	if (!desk)
		return NULL;
	desk->config = config;
	return desk;
}

struct native_desk *native_desk_free(struct native_desk *desk)
{
	if (!desk)
		return NULL;
	if (desk->past)
		store_reader_close(desk->past);
	free(desk);
	return NULL;
}

static int native_desk_past(struct native_desk *desk)
{
	if (!desk->config->store)
		return -EOPNOTSUPP;
	return desk->past ? 0 : store_reader_open(desk->config->store, &desk->past);
}

static void native_desk_filter(const struct native_request *request, struct filter *ret_filter)
{
	struct filter filter = {0};

	if (request->device != NATIVE_ANY || request->device_uid) {
		filter.device_count = 1;
		filter.devices[0] = (struct filter_device){
			.by_id = request->device == NATIVE_ANY,
			.value = request->device == NATIVE_ANY ? request->device_uid
							       : request->device,
		};
	}
	if (request->type != NATIVE_ANY) {
		filter.has_type = true;
		filter.type = request->type;
	}
	*ret_filter = filter;
}

static int native_desk_series(struct native_desk *desk, const struct native_request *request,
			      struct emit *json)
{
	struct web_series_query query = {
		.from_ns = request->since_ns,
		.to_ns = request->until_ns,
		.step_s = request->step_s,
		.pid = request->pid,
		.limit = request->limit,
		.cursor = *request->cursor ? request->cursor : NULL,
	};

	native_desk_filter(request, &query.filter);
	return past_documents_series(desk->past, &query, json);
}

/* A document of the past, for who asks: all of it, or what concerns that user. */
static int native_desk_document(struct native_desk *desk, const struct native_question *question,
				struct emit *json)
{
	const struct native_hooks *hooks = &desk->config->hooks;
	const struct native_request *request = &question->request;
	struct web_past_query query = {
		.pid = request->pid,
		.kind = *request->incident ? request->incident : NULL,
		.since_ns = request->since_ns,
		.limit = request->limit,
		.cursor = *request->cursor ? request->cursor : NULL,
	};
	struct filter filter;
	struct past_scope scope = {
		.filter = &filter,
		.has_uid = !question->asker.sees_all,
		.uid = question->asker.uid,
		.has_address = request->want & NATIVE_WANT_ADDRESS,
		.address = request->address,
	};
	int r = native_desk_past(desk);

	native_desk_filter(request, &filter);
	if (r < 0)
		return r;
	if (request->kind == NATIVE_SERIES)
		return native_desk_series(desk, request, json);
	if (hooks->refresh && !query.cursor)
		hooks->refresh(hooks->context, question->came_ns);
	if (request->kind == NATIVE_LEAKS)
		return past_documents_leaks(desk->past, &query, &scope, json);
	return past_documents_incidents(desk->past, &query, &scope, json);
}

static void native_desk_health(struct emit *json, const struct web_health *health)
{
	emit_u64(json, "books", health->books);
	emit_u64(json, "books_refused", health->books_refused);
	emit_u64(json, "ended", health->ended);
	emit_u64(json, "leaked", health->leaked);
	emit_u64(json, "unobserved_exits", health->unobserved_exits);
	emit_open_object(json, "past");
	emit_bool(json, "running", health->store_runs);
	emit_u64(json, "bytes", health->store_bytes);
	emit_u64(json, "queued", health->store_queued);
	emit_u64(json, "written", health->store_written);
	emit_u64(json, "dropped", health->store_dropped);
	emit_close_object(json);
	emit_open_object(json, "old_clients");
	emit_u64(json, "connections", health->legacy_connections);
	emit_u64(json, "messages", health->legacy_messages);
	emit_u64(json, "refused", health->legacy_refused);
	emit_close_object(json);
}

static void native_desk_status(struct native_desk *desk, const struct native_question *question,
			       struct emit *json)
{
	const struct native_hooks *hooks = &desk->config->hooks;
	struct web_health health = {0};

	if (hooks->health)
		hooks->health(hooks->context, &health);
	document_open(json, "ttmem.status/1", clock_ns(CLOCK_REALTIME));
	emit_bool(json, "running", true);
	emit_u64(json, "pid", (uint64_t)getpid());
	emit_u64(json, "user_id", geteuid());
	emit_string(json, "version", desk->config->version);
	emit_string(json, "socket", desk->config->socket);
	emit_string(json, "http", health.http);
	emit_u64(json, "start_ns", health.start_ns);
	emit_bool(json, "you_see_all", question->asker.sees_all);
	native_desk_health(json, &health);
	emit_open_array(json, "notes");
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
}

/* What is written to a stream. */
static int native_desk_write(struct native_desk *desk, const struct native_question *question,
			     FILE *stream)
{
	const struct native_hooks *hooks = &desk->config->hooks;
	struct emit json = EMIT_INIT(stream);

	switch (question->request.kind) {
	case NATIVE_LEAKS:
	case NATIVE_INCIDENTS:
	case NATIVE_SERIES:
		return native_desk_document(desk, question, &json);
	case NATIVE_DUMP:
		if (!hooks->dump)
			return -EOPNOTSUPP;
		return hooks->dump(hooks->context, &question->asker, stream);
	case NATIVE_STATUS:
		native_desk_status(desk, question, &json);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

void native_desk_answer(struct native_desk *desk, const struct native_question *question,
			struct native_answer *answer)
{
	const char *text = NULL;
	FILE *stream;
	int r;

	if (question->request.kind == NATIVE_ROSTER) {
		r = native_roster_put(&desk->config->hooks, question->request.want,
				      question->came_ns, &question->asker, answer);
		native_answer_end(answer, r, NULL);
		return;
	}
	if (question->request.kind == NATIVE_REGIONS) {
		r = native_regions_put(&desk->config->hooks, question->came_ns, answer);
		native_answer_end(answer, r, NULL);
		return;
	}
	stream = native_answer_open(answer);
	r = stream ? native_desk_write(desk, question, stream) : -ENOMEM;
	/* What went wrong in writing is known to the answer. */
	if (stream && fclose(stream) < 0 && r == 0)
		r = answer->error;
	if (r == -EOPNOTSUPP && question->request.kind != NATIVE_DUMP)
		text = "this daemon remembers nothing of the past";
	if (r == -EINVAL)
		text = "the list does not go on there";
	native_answer_end(answer, r, text);
}
