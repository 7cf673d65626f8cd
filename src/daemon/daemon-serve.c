/* SPDX-License-Identifier: Apache-2.0 */

/* Makes what clients connect to: the native server, HTTP; and starts pushing. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "daemon/daemon.h"
#include "daemon/fleet/fleet.h"
#include "daemon/flight/flight-files.h"
#include "daemon/notify/log-writer.h"
#include "daemon/registry/collector.h"
#include "web/export/push.h"

static int serve_offer(void *context, struct accept_peer *peer)
{
	struct daemon *daemon = context;

	return registry_add_peer_consume(daemon->registry, peer);
}

static struct book_list *serve_roster(void *context)
{
	struct daemon *daemon = context;

	return registry_books(daemon->registry);
}

static int serve_totals(void *context, uint64_t since_ns, struct snapshot **ret_snapshot)
{
	struct daemon *daemon = context;

	return collector_totals(daemon->collector, since_ns, ret_snapshot);
}

static int serve_recording(void *context, const char *name, const struct access_peer *asker)
{
	const struct daemon *daemon = context;

	return flight_files_open(daemon->config->state, name, asker);
}

int daemon_serve_native(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	struct native_config native = {
		.loop = daemon->loop,
		.work = daemon->query_worker,
		.proc = registry_proc(daemon->registry),
		.access = &daemon->access,
		.provider = &daemon->provider,
		.hooks =
			{
				.context = daemon,
				.offer_consume = serve_offer,
				.link_consume = daemon_link_consume,
				.book_list = serve_roster,
				.totals = serve_totals,
				.recording = serve_recording,
			},
	};
	int fd = cleanup_steal_fd(&daemon->handed.native);
	int r;

	r = daemon_link_open(daemon);
	if (r == 0)
		r = native_new(&daemon->native, &native);
	daemon->native_is_given = fd >= 0;
	if (r == 0 && fd >= 0)
		r = native_listen_consume(daemon->native, fd);
	return r < 0 ? daemon_fail("cannot serve on", config->socket, r) : 0;
}

int daemon_serve_web(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct web_config web = {
		.address = config->http,
		.details = config->http_details,
		.hosts = config->http_hosts,
		.token_file = config->token_file,
		.metrics_processes = config->metrics_processes,
		.provider = &daemon->provider,
	};
	const char *problem = NULL;
	int r = web_new(&daemon->web, &web, &problem);

	if (r < 0)
		return r;
	pthread_mutex_lock(&daemon->lock);
	snprintf(daemon->web_address, sizeof(daemon->web_address), "%s", web_address(daemon->web));
	pthread_mutex_unlock(&daemon->lock);
	return 0;
}

int daemon_open_fleet(struct daemon *daemon)
{
	const struct fleet_config fleet = {
		.hosts = daemon->config->fleet,
		.prometheus = daemon->config->fleet_prometheus,
		.token = getenv("TTMEM_PROMETHEUS_TOKEN"),
	};
	int r = fleet.hosts || fleet.prometheus ? fleet_new(&daemon->fleet, &fleet) : 0;

	return r < 0 ? daemon_fail("cannot prepare", "the fleet", r) : 0;
}

static void serve_tell_push(void *context, const char *problem)
{
	struct daemon *daemon = context;

	/* Without room for the line it is not logged; the figures are in /metrics. */
	if (problem)
		(void)log_writer_print(daemon->log_writer, "ttmemd: cannot push to %s: %s\n",
				       daemon->config->otlp, problem);
	else
		(void)log_writer_print(daemon->log_writer, "ttmemd: pushing to %s works again\n",
				       daemon->config->otlp);
}

/* The variable of OpenTelemetry exporters, else the one of TLS programs in general. */
static const char *serve_ca_file(void)
{
	const char *file = getenv("OTEL_EXPORTER_OTLP_CERTIFICATE");

	return file ? file : getenv("SSL_CERT_FILE");
}

int daemon_serve_push(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct push_config push = {
		.url = config->otlp,
		.headers = getenv("OTEL_EXPORTER_OTLP_HEADERS"),
		.attributes = getenv("OTEL_RESOURCE_ATTRIBUTES"),
		.service_name = getenv("OTEL_SERVICE_NAME"),
		.ca_file = serve_ca_file(),
		.client_file = getenv("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"),
		.key_file = getenv("OTEL_EXPORTER_OTLP_CLIENT_KEY"),
		.version = DAEMON_VERSION,
		.interval_s = config->otlp_interval_s,
		.metrics_processes = config->metrics_processes,
		.provider = &daemon->provider,
		.tell = serve_tell_push,
		.tell_context = daemon,
	};
	const char *problem = NULL;
	struct push *made = NULL;
	int r;

	if (!config->otlp)
		return 0;
	r = push_new(&made, &push, &problem);
	/* Its thread asks for our health at once. */
	__atomic_store_n(&daemon->push, made, __ATOMIC_RELEASE);
	if (r == 0)
		return 0;
	fprintf(stderr, "ttmemd: cannot push to %s: %s\n", config->otlp,
		problem ? problem : strerror(-r));
	return 1;
}
