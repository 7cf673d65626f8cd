/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pushes to an OpenTelemetry collector, over OTLP/HTTP in JSON: metrics at an interval, incidents
 * as log records as they happen. It has its own thread; the daemon never waits for it.
 *
 * Incidents wait in a bounded queue while the collector is away; those that do not fit are dropped
 * and counted. Metrics are not queued: the next ones supersede them. A collector that is
 * unreachable or asks us to wait is retried after growing delays, up to a minute or as long as it
 * said, with jitter so that not all machines return at once. If it refuses a message, the message
 * is dropped. Metrics and incidents back off separately: they often end up in different stores, and
 * one of them may be down.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/quota.h"

struct push;
struct web_incident;
struct web_provider;

#define PUSH_BATCH_MAX 100u /* in one message */
#define PUSH_INCIDENT_MAX (UINT32_C(64) << 10)
#define PUSH_BACKOFF_MIN_MS 1000u
#define PUSH_BACKOFF_MAX_MS 60000u
#define PUSH_PATIENCE_MAX_S 300u /* longest Retry-After that is honoured */
#define PUSH_FAREWELL_MS 3000u   /* for what is still queued at the end, unless pushing fails */
#define PUSH_ATTRIBUTES_MAX 32u  /* of OTEL_RESOURCE_ATTRIBUTES */

/* Values of the OTEL_ variables, unmodified; NULL = not set. */
struct push_config {
	const char *url;          /* "http://collector:4318"; /v1/metrics and /v1/logs are added */
	const char *headers;      /* "name=value,name=value": OTEL_EXPORTER_OTLP_HEADERS */
	const char *attributes;   /* likewise: OTEL_RESOURCE_ATTRIBUTES */
	const char *service_name; /* OTEL_SERVICE_NAME */
	const char *ca_file;      /* for https; NULL = the system's trusted ones */
	const char *client_file, *key_file;
	const char *version;
	uint32_t interval_s;
	uint32_t metrics_processes; /* as in web_config */
	const struct web_provider *provider;

	/*
	 * Called by the thread when pushing starts to fail, with a reason for people, or works
	 * again: NULL. May be NULL.
	 */
	void (*tell)(void *context, const char *problem);
	void *tell_context;
};

/* 0 or a negative errno; @ret_problem is a static text or NULL. */
int push_new(struct push **ret_push, const struct push_config *config, const char **ret_problem);
struct push *push_free(struct push *push);

/* From any thread; never waits. */
void push_tell_incident(struct push *push, const struct web_incident *incident);

struct push_counts {
	uint64_t sent;      /* messages that were accepted */
	uint64_t failed;    /* messages that were not, and were retried or dropped */
	uint64_t dropped;   /* incidents that were lost */
	uint64_t incidents; /* incidents that were accepted */
	uint64_t partial;   /* messages accepted only in part */
	uint32_t queued;
};

void push_counts(struct push *push, struct push_counts *ret_counts);
