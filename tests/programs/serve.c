/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP server over the books that a scan finds, for tests:
 *
 *	serve ADDRESS TOKEN-FILE|- [details] [alive=MS] [answer=MS]
 *
 * Prints "listening ADDRESS", then reads one line at a time from stdin and answers "ok":
 *
 *	incident KIND PID DEVICE	sends an incident to the stream
 *	slow MS				how long each detailed snapshot takes from now on
 *	hold				detailed snapshots wait
 *	go				they do not any more
 *	ended DEVICE ALLOCS FREES	as if a process with these DRAM counts had exited
 *	stored RECORDS			as if so many incidents had been stored since the start
 *
 * The history is made up: one leak, three points.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "answers/document.h"
#include "answers/history.h"
#include "answers/incidents.h"
#include "base/clock.h"
#include "base/emit.h"
#include "book/read/view.h"
#include "model/health.h"
#include "model/history.h"
#include "model/query.h"
#include "model/snapshot.h"
#include "source/books/address-history.h"
#include "source/books/book-source.h"
#include "source/books/scan.h"
#include "source/source.h"
#include "web/server/web.h"

struct serve {
	pthread_mutex_t lock;
	struct source *books;
	struct view *view;
	struct tally past;
	uint32_t slow_ms; /* atomic */
	bool holds;       /* atomic */
	uint64_t records; /* atomic */
};

static void serve_take_time(const struct serve *serve)
{
	usleep(1000 * __atomic_load_n(&serve->slow_ms, __ATOMIC_RELAXED));
	while (__atomic_load_n(&serve->holds, __ATOMIC_RELAXED))
		usleep(1000);
}

static int serve_snapshot(void *context, const struct snapshot_request *request,
			  struct snapshot **ret_snapshot)
{
	struct serve *serve = context;
	struct snapshot *snapshot = snapshot_new(0);
	int r;

	if (!snapshot)
		return -ENOMEM;
	if (request->buffers)
		serve_take_time(serve);
	pthread_mutex_lock(&serve->lock);
	r = source_collect(serve->books, request, snapshot);
	pthread_mutex_unlock(&serve->lock);
	snapshot->time_ns = clock_ns(CLOCK_REALTIME);
	if (r == 0)
		r = snapshot_finish(snapshot);
	if (r < 0)
		snapshot_free(snapshot);
	else
		*ret_snapshot = snapshot;
	return r;
}

static int serve_incidents(void *context, const struct query *query,
			   const struct query_asker *asker, struct emit *json)
{
	const struct snapshot_request request = {.incidents = true};
	struct snapshot *snapshot = NULL;
	int r;

	if (query->cursor || (query->kind && strcmp(query->kind, "double_free") != 0))
		return -EINVAL;
	r = serve_snapshot(context, &request, &snapshot);
	if (r < 0)
		return r;
	document_put(json, &incidents_document, snapshot, snapshot);
	snapshot_free(snapshot);
	return 0;
}

static int serve_leaks(void *context, const struct query *query, const struct query_asker *asker,
		       struct emit *json)
{
	bool second = query->cursor && strcmp(query->cursor, "second") == 0;

	if (query->cursor && !second)
		return -EINVAL;
	document_open(json, "ttmem.leaks/1", clock_ns(CLOCK_REALTIME));
	emit_open_array(json, "processes");
	emit_close_array(json);
	document_page_end(json, true, second ? NULL : "second");
	emit_open_array(json, "notes");
	emit_close_array(json);
	emit_close_object(json);
	emit_end(json);
	return 0;
}

static int serve_history(void *context, const struct query *query, const struct query_asker *asker,
			 struct emit *json)
{
	struct serve *serve = context;
	struct snapshot *snapshot = snapshot_new(clock_ns(CLOCK_REALTIME));
	struct history history = HISTORY_NULL;
	struct scan *scan = book_source_scan(serve->books);
	const struct snapshot_request request = {.filter = query->filter};
	int r;

	if (!snapshot)
		return -ENOMEM;
	pthread_mutex_lock(&serve->lock);
	r = scan_run(scan);
	for (size_t i = 0; r == 0 && i < scan->count; i++)
		r = address_history_collect(scan->books[i], query->address, &request, serve->view,
					    snapshot, &history);
	pthread_mutex_unlock(&serve->lock);
	if (r == 0)
		r = snapshot_finish(snapshot);
	if (r == 0)
		document_put(json, &history_document, snapshot,
			     &(struct history_answer){snapshot, &history, NULL, query->address});
	history_deinit(&history);
	snapshot_free(snapshot);
	return r;
}

static int serve_series(void *context, const struct query *query, const struct query_asker *asker,
			struct emit *json)
{
	(void)context;
	(void)query;
	(void)json;
	return -EAGAIN; /* there is no database */
}

static void serve_health(void *context, struct health *ret_health)
{
	struct serve *serve = context;

	pthread_mutex_lock(&serve->lock);
	*ret_health = (struct health){
		.store_runs = true,
		.store_written = 7,
		.books = book_source_scan(serve->books)->count,
		.incidents = {1, 2, 3, 4, 5},
		.start_ns = UINT64_C(1700000000000000000),
		.past = serve->past,
	};
	pthread_mutex_unlock(&serve->lock);
}

static uint64_t serve_records(void *context)
{
	const struct serve *serve = context;

	return __atomic_load_n(&serve->records, __ATOMIC_RELAXED);
}

static void serve_incident(struct web *web, const char *kind, uint32_t pid, uint32_t device)
{
	char text[256];
	struct web_incident incident = {.kind = kind, .pid = pid, .device = device, .json = text};

	incident.length = (size_t)snprintf(text, sizeof(text),
					   "{\"kind\":\"%s\",\"pid\":%" PRIu32
					   ",\n\"device\":%" PRIu32 ",\"name\":\"secret\"}",
					   kind, pid, device);
	web_tell_incident(web, &incident);
}

static void serve_line(struct serve *serve, struct web *web, const char *line)
{
	char kind[32] = "";
	uint32_t a = 0, b = 0, c = 0;

	if (sscanf(line, "incident %31s %" SCNu32 " %" SCNu32, kind, &a, &b) == 3) {
		serve_incident(web, kind, a, b);
	} else if (sscanf(line, "slow %" SCNu32, &a) == 1) {
		__atomic_store_n(&serve->slow_ms, a, __ATOMIC_RELAXED);
	} else if (sscanf(line, "stored %" SCNu32, &a) == 1) {
		__atomic_store_n(&serve->records, a, __ATOMIC_RELAXED);
	} else if (strcmp(line, "hold\n") == 0 || strcmp(line, "go\n") == 0) {
		__atomic_store_n(&serve->holds, *line == 'h', __ATOMIC_RELAXED);
	} else if (sscanf(line, "ended %" SCNu32 " %" SCNu32 " %" SCNu32, &a, &b, &c) == 3) {
		pthread_mutex_lock(&serve->lock);
		tally_row(&serve->past, a, 0)->allocs[0] += b;
		tally_row(&serve->past, a, 0)->frees[0] += c;
		pthread_mutex_unlock(&serve->lock);
	}
}

static int serve_start(struct serve *serve, int argc, char **argv, struct web **ret_web)
{
	const struct web_provider provider = {
		.context = serve,
		.snapshot = serve_snapshot,
		.leaks = serve_leaks,
		.incidents = serve_incidents,
		.history = serve_history,
		.series = serve_series,
		.health = serve_health,
		.records = serve_records,
	};
	struct web_config config = {
		.address = argv[1],
		.token_file = strcmp(argv[2], "-") == 0 ? NULL : argv[2],
		.metrics_processes = 2,
		.provider = &provider,
	};
	const char *problem = NULL;
	int r;

	for (int i = 3; i < argc; i++) {
		if (sscanf(argv[i], "alive=%" SCNu32, &config.alive_ms) != 1 &&
		    sscanf(argv[i], "answer=%" SCNu32, &config.answer_ms) != 1)
			config.details = strcmp(argv[i], "details") == 0;
	}
	r = web_new(ret_web, &config, &problem);
	if (r == 0 && config.token_file)
		r = web_load_token(*ret_web, config.token_file, &problem);
	if (r < 0)
		fprintf(stderr, "serve: %s\n", problem ? problem : strerror(-r));
	return r;
}

/* As ttmemd does. */
static void serve_raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* on failure fewer clients fit */
}

int main(int argc, char **argv)
{
	struct serve serve = {.view = calloc(1, sizeof(struct view))};
	struct web *web = NULL;
	char line[256];
	int r;

	if (argc < 3 || !serve.view || book_source_new(&serve.books) < 0)
		return 2;
	serve_raise_limits();
	pthread_mutex_init(&serve.lock, NULL);
	r = serve_start(&serve, argc, argv, &web);
	if (r == 0)
		printf("listening %s\n", web_address(web));
	fflush(stdout);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		serve_line(&serve, web, line);
		puts("ok");
		fflush(stdout);
	}
	web_free(web);
	view_deinit(serve.view);
	free(serve.view);
	source_free(serve.books);
	pthread_mutex_destroy(&serve.lock);
	return r < 0;
}
