/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pushing to an OpenTelemetry collector, over OTLP/HTTP in JSON: metrics at an interval, incidents as log
 * records as they happen. A thread of its own; the daemon never waits for it.
 *
 * Incidents wait in a bounded queue while the collector is away; what finds no room is dropped and
 * counted. Metrics are not queued: the next ones say more. A collector that is away or asks for patience
 * is asked again later and later, up to a minute or when it said, and not by all machines at once; one that
 * says that it does not like a message is believed, and the message is dropped. All this for metrics and for
 * incidents by themselves: often they end in different stores, and one of them is down.
 */

#include <stddef.h>
#include <stdint.h>

struct push;
struct web_incident;
struct web_provider;

#define PUSH_QUEUE_MAX 1000u /* incidents that wait */
#define PUSH_BATCH_MAX 100u  /* in one message */
#define PUSH_INCIDENT_MAX (UINT32_C(64) << 10)
#define PUSH_BACKOFF_MIN_MS 1000u
#define PUSH_BACKOFF_MAX_MS 60000u
#define PUSH_PATIENCE_MAX_S 300u /* of what a Retry-After asks for, so much is granted */
#define PUSH_FAREWELL_MS 3000u   /* for what still waits at the end, if all is well */
#define PUSH_ATTRIBUTES_MAX 32u  /* of OTEL_RESOURCE_ATTRIBUTES */

/* What is in an OTEL_ variable, as it stands there; NULL = not set. */
struct push_config {
	const char *url;          /* "http://collector:4318"; /v1/metrics and /v1/logs are added */
	const char *headers;      /* "name=value,name=value": OTEL_EXPORTER_OTLP_HEADERS */
	const char *attributes;   /* the same: OTEL_RESOURCE_ATTRIBUTES */
	const char *service_name; /* OTEL_SERVICE_NAME */
	const char *ca_file;      /* of https; NULL = those that the system trusts */
	const char *client_file, *key_file;
	const char *version;
	uint32_t interval_s;
	uint32_t metrics_processes; /* as in web_config */
	const struct web_provider *provider;

	/* Pushing begins to fail, with a reason for people, or works again: NULL. By the thread. May be NULL. */
	void (*tell)(void *context, const char *problem);
	void *tell_context;
};

/* 0 or a negative errno; @ret_problem is a static text or NULL. */
int push_new(struct push **ret_push, const struct push_config *config, const char **ret_problem);
struct push *push_free(struct push *push);

/* From any thread; never waits. */
void push_tell_incident(struct push *push, const struct web_incident *incident);

struct push_counts {
	uint64_t sent;      /* messages that were taken */
	uint64_t failed;    /* that were not, and were tried again or dropped */
	uint64_t dropped;   /* incidents that are lost */
	uint64_t incidents; /* that were taken */
	uint64_t partial;   /* messages of which it took only a part */
	uint32_t queued;
};

void push_counts(struct push *push, struct push_counts *ret_counts);
