/* SPDX-License-Identifier: Apache-2.0 */

/* The queue for a collector that is never there. test_otlp.py checks what a real one receives. */

#include "model/health.h"
#include "web/export/push.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/testing/unit.h"
#include "model/snapshot.h"
#include "web/export/push-private.h"
#include "web/server/web.h"

static int no_snapshot(void *context, const struct snapshot_request *request,
		       struct snapshot **ret_snapshot)
{
	(void)context;
	(void)request;
	*ret_snapshot = snapshot_new(1);
	assert(*ret_snapshot && snapshot_finish(*ret_snapshot) == 0);
	return 0;
}

static void no_health(void *context, struct health *ret_health)
{
	(void)context;
	*ret_health = (struct health){.start_ns = 1};
}

static const struct web_provider provider = {.snapshot = no_snapshot, .health = no_health};

/* Port 1 of this machine: nobody listens there. */
static struct push *push_nowhere(void)
{
	const struct push_config config = {
		.url = "http://127.0.0.1:1",
		.version = "1",
		.interval_s = 1,
		.provider = &provider,
	};
	const char *problem = NULL;
	struct push *push = NULL;

	assert(push_new(&push, &config, &problem) == 0 && !problem);
	return push;
}

static void tell_of(struct push *push, uint32_t user, const char *json)
{
	const struct web_incident incident = {
		.kind = "leak", .pid = 1, .user = user, .json = json, .length = strlen(json)};

	push_tell_incident(push, &incident);
}

static void tell(struct push *push, const char *json)
{
	tell_of(push, 7, json);
}

UNIT(a_full_queue_drops_and_counts)
{
	struct push *push = push_nowhere();
	struct push_counts counts;

	for (unsigned int i = 0; i < PUSH_QUEUE_MAX / 2 + 200; i++)
		tell(push, "{}");
	push_counts(push, &counts);
	assert(counts.queued == PUSH_QUEUE_MAX / 2 && counts.dropped == 200);
	/* Another user's still find room. */
	for (unsigned int i = 0; i < 100; i++)
		tell_of(push, 8, "{}");
	push_counts(push, &counts);
	assert(counts.queued == PUSH_QUEUE_MAX / 2 + 100 && counts.dropped == 200);
	assert(counts.incidents == 0 && counts.sent == 0);
	push_free(push);
}

UNIT(failed_pushes_are_counted_and_retried)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	struct push *push = push_nowhere();
	struct push_counts counts = {0};

	tell(push, "{}");
	while (counts.failed < 2) {
		nanosleep(&moment, NULL);
		push_counts(push, &counts);
	}
	assert(counts.queued == 1 && counts.dropped == 0);
	push_free(push);
}

UNIT(an_incident_too_long_to_send_is_dropped)
{
	static char text[PUSH_INCIDENT_MAX + 2];
	struct push *push = push_nowhere();
	struct push_counts counts;

	memset(text, 'x', sizeof(text) - 1);
	tell(push, text);
	push_counts(push, &counts);
	assert(counts.dropped == 1 && counts.queued == 0);
	push_free(push);
}

UNIT(invalid_push_headers_are_refused)
{
	static const char *const wrong[] = {"key", "=x", "a=b,c", "a=%0a"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const struct push_config config = {.url = "http://127.0.0.1:1",
						   .headers = wrong[i],
						   .version = "1",
						   .interval_s = 1,
						   .provider = &provider};
		const char *problem = NULL;
		struct push *push = NULL;

		assert(push_new(&push, &config, &problem) == -EINVAL && problem && !push);
	}
}

UNIT(header_pairs_are_parsed)
{
	char text[] = " a = 1 ,,b=%41%3d%2C,c=";
	char *rest = text;
	const char *name, *value;

	assert(push_pairs_next(&rest, &name, &value) == 1);
	assert(strcmp(name, "a") == 0 && strcmp(value, "1") == 0);
	assert(push_pairs_next(&rest, &name, &value) == 1);
	assert(strcmp(name, "b") == 0 && strcmp(value, "A=,") == 0);
	assert(push_pairs_next(&rest, &name, &value) == 1);
	assert(strcmp(name, "c") == 0 && !*value);
	assert(push_pairs_next(&rest, &name, &value) == 0);
}

UNIT(malformed_header_pairs_are_refused)
{
	static const char *const wrong[] = {"a",     "=b",    "a=%",   "a=%4",
					    "a=%4g", "a=%00", "a=%0a", "a%7f=b"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		char text[16];
		char *rest = text;
		const char *name = NULL, *value = NULL;

		snprintf(text, sizeof(text), "%s", wrong[i]);
		assert(push_pairs_next(&rest, &name, &value) == -EINVAL && !name && !value);
	}
}

static uint64_t rejected(const char *text)
{
	return push_answer_rejected(text, strlen(text), 10);
}

UNIT(rejected_records_are_read_from_the_answer)
{
	assert(rejected("{\"partialSuccess\":{\"rejectedDataPoints\":\"3\"}}") == 3);
	assert(rejected("{\"partialSuccess\":{\"rejectedLogRecords\":4}}") == 4);
	assert(rejected("{\"partialSuccess\":{\"rejectedLogRecords\":\"11\"}}") == 10);
	assert(rejected("{\"partialSuccess\":{\"rejectedLogRecords\":-1}}") == 0);
	assert(rejected("{\"partialSuccess\":{\"rejectedLogRecords\":\"-1\"}}") == 0);
	assert(rejected("{\"partialSuccess\":{\"rejectedLogRecords\":\"3x\"}}") == 0);
	assert(rejected("{\"partialSuccess\":[]}") == 0);
	assert(rejected("{\"partialSuccess\":{}}") == 0);
	assert(rejected("[[[[") == 0);
	assert(rejected("") == 0);
}
