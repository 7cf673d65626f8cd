/* SPDX-License-Identifier: Apache-2.0 */

/* The pushing thread and its queue. push-message.c makes the messages, push-post.c sends them. */

#include "web/export/push.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/quota.h"
#include "base/threads/worker.h"
#include "model/health.h"
#include "model/snapshot-request.h"
#include "model/snapshot.h"
#include "web/export/metrics.h"
#include "web/export/push-private.h"
#include "web/server/web.h"

/*
 * One URL of the collector. Each has its own back-off: the store behind one may be down while the
 * other works.
 */
struct push_line {
	const char *path;
	uint64_t due;        /* CLOCK_MONOTONIC: nothing is sent before this */
	uint32_t backoff_ms; /* 0 = no failure */
	bool fails;          /* its last message was not accepted */
};

struct push {
	struct push_config config;
	struct web_provider provider;
	struct push_post *post;
	char host[256];
	char *attributes_text; /* holds the names and values below */
	struct exposition_attribute attributes[PUSH_ATTRIBUTES_MAX];
	size_t attribute_count;
	struct worker *worker;
	struct worker_job farewell;
	pthread_mutex_t lock;                       /* protects what follows */
	struct push_incident queue[PUSH_QUEUE_MAX]; /* a ring */
	uint32_t first;
	struct quota queued;
	struct push_counts counts;

	/* Private to the thread. */
	struct tally told;
	struct push_line metrics, logs;
	bool fails; /* last reported state */
};

void push_tell_incident(struct push *push, const struct web_incident *incident)
{
	struct push_incident item;
	bool is_whole = push_incident_init(&item, incident), kept = false;

	pthread_mutex_lock(&push->lock);
	if (is_whole && quota_take(&push->queued, item.user, 1)) {
		push->queue[(push->first + push->queued.used - 1) % PUSH_QUEUE_MAX] = item;
		kept = true;
	} else {
		push->counts.dropped++;
	}
	pthread_mutex_unlock(&push->lock);
	if (kept)
		worker_poke(push->worker);
	else
		push_incident_deinit(&item);
}

static void push_origin(const struct push *push, struct exposition_origin *ret_origin)
{
	struct health health = {0};

	push->provider.health(push->provider.context, &health);
	*ret_origin = (struct exposition_origin){
		.host = push->host,
		.version = push->config.version,
		.attributes = push->attributes,
		.attribute_count = push->attribute_count,
		.start_ns = health.start_ns,
		.time_ns = clock_ns(CLOCK_REALTIME),
	};
}

/*
 * Up to a quarter more or less, so that machines that lost their collector together do not all
 * return at once.
 */
static uint32_t push_spread(uint32_t ms)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return ms; /* no entropy yet, early in boot */
	return ms - ms / 4 + number % (ms / 2);
}

/* Reports each change once; it works again when both lines do. */
static void push_tell(struct push *push, const struct push_result *result)
{
	bool fails = push->metrics.fails || push->logs.fails;

	if (fails == push->fails)
		return;
	push->fails = fails;
	if (push->config.tell)
		push->config.tell(push->config.tell_context, fails ? result->problem : NULL);
}

/* After a failure: waits longer each time, or as long as the collector asked for. */
static void push_postpone(struct push_line *line, uint32_t patience_s)
{
	uint64_t wait_ms;

	line->backoff_ms = (uint32_t)bits_min(bits_max(2 * line->backoff_ms, PUSH_BACKOFF_MIN_MS),
					      PUSH_BACKOFF_MAX_MS);
	wait_ms = bits_max(push_spread(line->backoff_ms), UINT64_C(1000) * patience_s);
	line->due = clock_ns(CLOCK_MONOTONIC) + wait_ms * NS_PER_MS;
}

/* Counts the outcome and decides when the line may be tried again. */
static void push_conclude(struct push *push, struct push_line *line,
			  const struct push_result *result, bool is_partial)
{
	pthread_mutex_lock(&push->lock);
	if (result->outcome == PUSH_TAKEN)
		push->counts.sent++;
	else
		push->counts.failed++;
	push->counts.partial += is_partial;
	pthread_mutex_unlock(&push->lock);
	line->fails = result->outcome != PUSH_TAKEN;
	push_tell(push, result);
	if (result->outcome == PUSH_AWAY)
		push_postpone(line, result->patience_s);
	else
		line->backoff_ms = 0;
}

/*
 * @parts: points or records in the message; @ret_rejected: how many of them were rejected although
 * the message was accepted.
 */
static enum push_outcome push_send(struct push *push, struct push_line *line, const char *text,
				   size_t length, uint64_t parts, uint64_t *ret_rejected)
{
	struct push_result result;
	uint64_t rejected = 0;

	push_post_send(push->post, line->path, text, length, &result);
	if (result.outcome == PUSH_TAKEN)
		rejected = push_answer_rejected(result.answer, result.answer_length, parts);
	push_conclude(push, line, &result, rejected > 0);
	*ret_rejected = rejected;
	return result.outcome;
}

static void push_metrics(struct push *push)
{
	static const struct snapshot_request request = {0};
	struct exposition_origin origin;
	CLEANUP_FREE struct health *health = calloc(1, sizeof(*health));
	CLEANUP_FREE char *text = NULL;
	struct snapshot *snapshot = NULL;
	size_t length = 0;
	uint64_t rejected;
	FILE *out;

	if (!health)
		return;
	push_origin(push, &origin);
	/* Before the snapshot: see web.h. */
	push->provider.health(push->provider.context, health);
	if (push->provider.snapshot(push->provider.context, &request, &snapshot) < 0)
		return;
	out = open_memstream(&text, &length);
	if (out) {
		const struct metrics_input input = {
			.snapshot = snapshot,
			.health = health,
			.processes = push->config.metrics_processes,
			.origin = &origin,
			.provider = &push->provider,
		};

		metrics_write(&input, &push->told, EXPOSITION_OTLP, out);
		if (fclose(out) == 0) /* if not accepted: the next one supersedes it */
			(void)push_send(push, &push->metrics, text, length, 1, &rejected);
	}
	snapshot_free(snapshot);
}

/* Sends the oldest incidents in one message. They leave the queue once accepted or refused. */
static void push_logs(struct push *push)
{
	struct push_incident batch[PUSH_BATCH_MAX];
	struct exposition_origin origin;
	CLEANUP_FREE char *text = NULL;
	enum push_outcome outcome;
	size_t length = 0;
	uint64_t rejected;
	uint32_t count;

	pthread_mutex_lock(&push->lock);
	count = (uint32_t)bits_min(push->queued.used, PUSH_BATCH_MAX);
	/* Only this thread removes entries, so the texts stay valid. */
	for (uint32_t i = 0; i < count; i++)
		batch[i] = push->queue[(push->first + i) % PUSH_QUEUE_MAX];
	pthread_mutex_unlock(&push->lock);
	if (count == 0)
		return;
	push_origin(push, &origin);
	if (push_message_logs(&origin, batch, count, &text, &length) < 0) {
		push_postpone(&push->logs, 0); /* retry when there may be memory */
		return;
	}
	outcome = push_send(push, &push->logs, text, length, count, &rejected);
	if (outcome == PUSH_AWAY)
		return;
	pthread_mutex_lock(&push->lock);
	push->first = (push->first + count) % PUSH_QUEUE_MAX;
	for (uint32_t i = 0; i < count; i++)
		quota_give(&push->queued, batch[i].user, 1);
	if (outcome != PUSH_TAKEN)
		rejected = count;
	push->counts.incidents += count - rejected;
	push->counts.dropped += rejected;
	pthread_mutex_unlock(&push->lock);
	for (uint32_t i = 0; i < count; i++)
		push_incident_deinit(&batch[i]);
}

static bool push_has_queued(struct push *push)
{
	bool has;

	pthread_mutex_lock(&push->lock);
	has = push->queued.used > 0;
	pthread_mutex_unlock(&push->lock);
	return has;
}

/* Sends what is due. Return: when there is something to do next; an incident wakes the thread. */
static uint64_t push_tick(void *context, uint64_t now_ns)
{
	struct push *push = context;

	if (now_ns >= push->metrics.due) {
		push->metrics.due = now_ns + push->config.interval_s * NS_PER_S;
		push_metrics(push);
	}
	if (clock_ns(CLOCK_MONOTONIC) >= push->logs.due)
		push_logs(push);
	return push_has_queued(push) ? bits_min(push->metrics.due, push->logs.due)
				     : push->metrics.due;
}

/* Sends what is still queued at the end; push_post_stop() limits how long that may take. */
static void push_say_farewell(struct worker_job *job)
{
	struct push *push = container_of(job, struct push, farewell);

	while (!push->logs.backoff_ms && push_has_queued(push))
		push_logs(push);
}

static int push_start(struct push *push)
{
	const struct worker_config config = {.name = "push", .tick = push_tick, .context = push};

	push->farewell.run = push_say_farewell;
	(void)pthread_mutex_init(&push->lock, NULL); /* cannot fail on Linux */
	return worker_new(&push->worker, &config);
}

static void push_add_attribute(struct push *push, const char *name, const char *value)
{
	push->attributes[push->attribute_count++] =
		(struct exposition_attribute){.name = name, .value = value};
}

/* Of duplicate names the first counts: OTEL_SERVICE_NAME takes precedence over the list. */
static int push_read_attributes(struct push *push, const char **ret_problem)
{
	const struct push_config *config = &push->config;
	const char *name, *value;
	char *rest;
	int r;

	if (config->service_name && *config->service_name)
		push_add_attribute(push, "service.name", config->service_name);
	if (!config->attributes)
		return 0;
	rest = push->attributes_text = strdup(config->attributes);
	if (!rest)
		return -ENOMEM;
	while ((r = push_pairs_next(&rest, &name, &value)) > 0) {
		if (push->attribute_count == PUSH_ATTRIBUTES_MAX)
			r = -EINVAL;
		else if (!exposition_has_attribute(push->attributes, push->attribute_count, name))
			push_add_attribute(push, name, value);
		if (r < 0)
			break;
	}
	if (r < 0)
		*ret_problem = "OTEL_RESOURCE_ATTRIBUTES is not name=value,name=value, 32 at most";
	return r;
}

int push_new(struct push **ret_push, const struct push_config *config, const char **ret_problem)
{
	struct push *push = calloc(1, sizeof(*push));
	int r;

	if (!push)
		return -ENOMEM;
	push->config = *config;
	push->queued.total = PUSH_QUEUE_MAX;
	push->provider = *config->provider;
	push->metrics.path = "/v1/metrics";
	push->logs.path = "/v1/logs";
	if (gethostname(push->host, sizeof(push->host) - 1) < 0 || !*push->host)
		strcpy(push->host, "unknown");
	r = push_read_attributes(push, ret_problem);
	if (r == 0)
		r = push_post_new(&push->post, config, ret_problem);
	if (r == 0)
		r = push_start(push);
	if (r < 0) {
		push_post_free(push->post);
		free(push->attributes_text);
		free(push);
		return r;
	}
	*ret_push = push;
	return 0;
}

struct push *push_free(struct push *push)
{
	if (!push)
		return NULL;
	push_post_stop(push->post, PUSH_FAREWELL_MS);
	(void)worker_put(push->worker, &push->farewell); /* the queue has no limit */
	worker_free(push->worker);
	for (uint64_t i = 0; i < push->queued.used; i++)
		push_incident_deinit(&push->queue[(push->first + i) % PUSH_QUEUE_MAX]);
	quota_deinit(&push->queued);
	pthread_mutex_destroy(&push->lock);
	push_post_free(push->post);
	free(push->attributes_text);
	free(push);
	return NULL;
}

void push_counts(struct push *push, struct push_counts *ret_counts)
{
	pthread_mutex_lock(&push->lock);
	*ret_counts = push->counts;
	ret_counts->queued = (uint32_t)push->queued.used;
	pthread_mutex_unlock(&push->lock);
}
