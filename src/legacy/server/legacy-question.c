/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Questions are answered together. While one batch is at work, others gather; the next batch takes
 * all of them and answers from one snapshot of the machine. So a thousand questions cost as much as
 * one, and each answer is newer than its question.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/remaining-report.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/threads/worker.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/collector.h"
#include "daemon/symbols/symbols-namer.h"
#include "legacy/server/legacy-answer.h"
#include "legacy/server/legacy-private.h"
#include "legacy/server/legacy-report.h"
#include "legacy/wire/legacy-encode.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"

enum question_kind {
	QUESTION_QUERY = 0,
	QUESTION_INFO,
	QUESTION_TEXT,
	QUESTION_RECORDS,
	QUESTION_REMAINING, /* from here on nothing is sent */
	QUESTION_KERNELS,
	QUESTION_SUMMARY,
	QUESTION_STATISTICS,
	QUESTION_REPORT, /* for ttmemd */
};

struct legacy_question {
	struct legacy_question *next;
	struct legacy_connection *connection; /* NULL = nobody waits */
	enum question_kind kind;
	enum legacy_dialect dialect;
	int32_t device;
	uint32_t uid;           /* of who asked; with @is_asked */
	bool is_asked;          /* by a client, and not by the daemon itself */
	uint64_t came_ns;       /* CLOCK_MONOTONIC */
	struct access_peer who; /* who asks; nobody, if nobody waits */

	int outcome; /* 0 or a negative errno */
	char *result;
	size_t length;
};

struct legacy_batch {
	struct worker_job job;
	struct legacy_server *server;
	struct collector *collector;
	struct symbols *symbols;
	struct legacy_question *questions;
};

static void question_free(struct legacy_question *question)
{
	free(question->result);
	free(question);
}

static bool question_wants_buffers(const struct legacy_question *question)
{
	return question->kind == QUESTION_TEXT || question->kind == QUESTION_REMAINING ||
	       question->kind == QUESTION_KERNELS || question->kind == QUESTION_REPORT;
}

static void question_encode(struct legacy_question *question, FILE *out,
			    const struct legacy_answer *answer)
{
	uint8_t bytes[LEGACY_SIZE_MAX];
	size_t length;

	question->outcome = legacy_encode_response(question->dialect, answer, bytes, &length);
	if (question->outcome == 0)
		(void)fwrite(bytes, length, 1, out); /* into memory; checked at the end */
}

static void question_write(struct legacy_question *question, FILE *out,
			   const struct snapshot *snapshot, struct legacy_history *history)
{
	struct legacy_answer answer;

	switch (question->kind) {
	case QUESTION_QUERY:
		legacy_answer_query(snapshot, question->device, &answer);
		question_encode(question, out, &answer);
		break;
	case QUESTION_INFO:
		legacy_answer_info(snapshot, question->device, &answer);
		question_encode(question, out, &answer);
		break;
	case QUESTION_TEXT:
		legacy_answer_text(out, snapshot, &question->who);
		break;
	case QUESTION_RECORDS:
		legacy_answer_statistics(out, snapshot);
		break;
	case QUESTION_REMAINING:
		fputs("📋 Received DUMP_REMAINING request...\n", out);
		question->outcome = legacy_report_remaining(out, snapshot, history);
		fputs("📋 DUMP_REMAINING complete.\n", out);
		break;
	case QUESTION_KERNELS:
		question->outcome = remaining_report_kernels(out, snapshot);
		break;
	case QUESTION_REPORT:
		question->outcome = legacy_report_remaining(out, snapshot, history);
		break;
	case QUESTION_SUMMARY:
		legacy_report_summary(out, snapshot);
		break;
	case QUESTION_STATISTICS:
		legacy_report_statistics(out, snapshot);
		break;
	}
}

/* The old script reads up to the first blank line. */
static void question_finish_text(struct legacy_question *question)
{
	char *text = malloc(LEGACY_ENCODE_TEXT_SIZE(question->length));

	if (!text) {
		question->outcome = -ENOMEM;
		return;
	}
	legacy_encode_text(question->result, question->length, text, &question->length);
	free(question->result);
	question->result = text;
}

static void question_answer(struct legacy_question *question, const struct snapshot *snapshot,
			    struct legacy_history *history)
{
	FILE *out = open_memstream(&question->result, &question->length);
	bool failed;

	if (!out) {
		question->outcome = -ENOMEM;
		return;
	}
	question_write(question, out, snapshot, history);
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed)
		question->outcome = -ENOMEM;
	else if (question->outcome == 0 && question->kind == QUESTION_TEXT)
		question_finish_text(question);
}

/* One snapshot answers all of them. It is the shared one, unless somebody asks for buffers. */
static int batch_read(const struct legacy_batch *batch, struct snapshot **ret_snapshot)
{
	CLEANUP(symbols_namer_deinit) struct symbols_namer namer = {.symbols = NULL};
	struct snapshot_request request = {0};
	const struct collector_wish wish = {.request = &request};
	uint64_t came_ns = 0;

	for (const struct legacy_question *q = batch->questions; q; q = q->next) {
		request.buffers = request.buffers || question_wants_buffers(q);
		came_ns = bits_max(came_ns, q->came_ns);
	}
	if (!request.buffers)
		return collector_totals(batch->collector, came_ns, ret_snapshot);
	if (batch->symbols) {
		symbols_namer_init(&namer, batch->symbols, true);
		request.namer = &namer.namer; /* within its time limit */
	}
	return collector_read(batch->collector, &wish, ret_snapshot);
}

/* In the worker's thread. */
static void batch_run(struct worker_job *job)
{
	struct legacy_batch *batch = container_of(job, struct legacy_batch, job);
	struct snapshot *snapshot = NULL;
	int r = batch_read(batch, &snapshot);

	for (struct legacy_question *q = batch->questions; q; q = q->next) {
		if (r == 0)
			question_answer(q, snapshot, batch->server->history);
		else
			q->outcome = r;
	}
	snapshot_free(snapshot);
}

/* The log is everybody's: a user who has filled it prints nothing more for a while. */
static bool question_may_print(const struct legacy_server *server,
			       const struct legacy_question *question, size_t length)
{
	return !question->is_asked ||
	       log_writer_charge(server->config.log_writer, question->uid, length);
}

static void question_done(struct legacy_server *server, struct legacy_question *question)
{
	struct legacy_connection *connection = question->connection;
	bool is_last = question->outcome < 0 || question->kind == QUESTION_RECORDS;
	uint8_t *bytes = NULL;

	if (question->kind == QUESTION_REPORT) {
		server->config.keeping.report(server->config.keeping.context,
					      question->outcome == 0 ? question->result : NULL,
					      question->length);
	} else if (question->outcome == 0 && question->kind >= QUESTION_REMAINING) {
		if (question_may_print(server, question, question->length))
			legacy_server_lines_consume(server, cleanup_steal(question->result),
						    question->length);
	} else if (question->outcome == 0) {
		bytes = (uint8_t *)cleanup_steal(question->result);
	}
	if (connection)
		legacy_connection_answer(connection, bytes, question->length, is_last);
	else
		free(bytes);
	question_free(question);
}

static void question_start(struct legacy_server *server);

/* In the loop's thread again. */
static void batch_done(struct worker_job *job)
{
	struct legacy_batch *batch = container_of(job, struct legacy_batch, job);
	struct legacy_server *server = batch->server;

	while (batch->questions) {
		struct legacy_question *question = batch->questions;

		batch->questions = question->next;
		question_done(server, question);
	}
	server->batch = NULL;
	free(batch);
	question_start(server);
}

/* If out of memory, the next question tries again. */
static void question_begin(struct legacy_server *server)
{
	struct legacy_batch *batch;

	if (server->batch || !server->questions || server->is_stopped)
		return;
	batch = calloc(1, sizeof(*batch));
	if (!batch)
		return;
	batch->job.run = batch_run;
	batch->job.done = batch_done;
	batch->server = server;
	batch->collector = server->config.collector;
	batch->symbols = server->config.symbols;
	batch->questions = cleanup_steal(server->questions);
	server->questions_end = &server->questions;
	server->batch = batch;
	(void)worker_put(server->config.work, &batch->job); /* any number may wait */
}

/* Starts the next batch, unless one is at work, as soon as what ttmemd knows by now is known here. */
static void question_start(struct legacy_server *server)
{
	const struct legacy_keeping *keeping = &server->config.keeping;

	if (server->batch || !server->questions || server->is_stopped || server->is_syncing)
		return;
	server->is_syncing = true;
	if (keeping->sync && keeping->sync(keeping->context))
		return;
	server->is_syncing = false;
	question_begin(server);
}

void legacy_server_synced(struct legacy_server *server)
{
	server->is_syncing = false;
	question_begin(server);
}

static struct legacy_question *question_new(struct legacy_server *server, enum question_kind kind)
{
	struct legacy_question *question = calloc(1, sizeof(*question));

	if (!question)
		return NULL;
	question->kind = kind;
	question->came_ns = clock_ns(CLOCK_MONOTONIC);
	*server->questions_end = question;
	server->questions_end = &question->next;
	server->counts.questions++;
	return question;
}

static int question_kind_of(enum legacy_type type)
{
	switch (type) {
	case LEGACY_QUERY:
		return QUESTION_QUERY;
	case LEGACY_DEVICE_INFO_QUERY:
		return QUESTION_INFO;
	case LEGACY_QUERY_ALL:
		return QUESTION_TEXT;
	case LEGACY_STATISTICS:
		return QUESTION_RECORDS;
	case LEGACY_DUMP_REMAINING:
		return QUESTION_REMAINING;
	case LEGACY_DUMP_KERNELS:
		return QUESTION_KERNELS;
	case LEGACY_ALLOC:
	case LEGACY_FREE:
	case LEGACY_RESPONSE:
	case LEGACY_DEVICE_INFO_RESPONSE:
	case LEGACY_CB_ALLOC:
	case LEGACY_CB_FREE:
	case LEGACY_KERNEL_LOAD:
	case LEGACY_KERNEL_UNLOAD:
	default:
		return -EINVAL;
	}
}

void legacy_question_put(struct legacy_server *server, struct legacy_connection *connection,
			 const struct legacy_message *message)
{
	int kind = question_kind_of(message->type);
	struct legacy_question *question;

	if (kind < 0)
		return;
	/* Before the work is done; what it costs is known after it. */
	if (kind >= QUESTION_REMAINING &&
	    !log_writer_charge(server->config.log_writer, connection->uid, 0))
		return;
	question = question_new(server, (enum question_kind)kind);
	if (!question)
		return; /* unanswered: the client's own time-out handles it */
	question->connection = connection;
	question->uid = connection->uid;
	question->is_asked = true;
	question->dialect = message->dialect;
	question->device = message->device;
	question->who = connection->who;
	connection->question = question;
	question_start(server);
}

void legacy_question_put_report(struct legacy_server *server, enum legacy_report_kind kind)
{
	/* If out of memory, there is no report; the next one may be made. */
	(void)question_new(server, QUESTION_REMAINING + (enum question_kind)kind);
	question_start(server);
}

void legacy_server_ask(struct legacy_server *server)
{
	if (server->is_stopped || !question_new(server, QUESTION_REPORT))
		server->config.keeping.report(server->config.keeping.context, NULL, 0);
	question_start(server);
}

void legacy_question_abandon(struct legacy_question *question)
{
	question->connection = NULL;
}

void legacy_question_free_all(struct legacy_server *server)
{
	while (server->questions) {
		struct legacy_question *question = server->questions;

		server->questions = question->next;
		question_free(question);
	}
	server->questions_end = &server->questions;
}
