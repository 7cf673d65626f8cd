/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Several machines in one table: each asked over HTTP where ttmemd serves it, or all at once
 * through a Prometheus that scrapes them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SMI_HOSTS_MAX 256u
#define SMI_HOSTS_TEXT_MAX (UINT32_C(64) << 20)   /* bytes of one answer */
#define SMI_HOSTS_TEXTS_MAX (UINT32_C(512) << 20) /* of all answers together */

struct document;
struct http_fetch_limits;

extern const struct document hosts_document;

/* Of what is asked for the table; enough for two thousand hosts of a Prometheus. */
extern const struct http_fetch_limits smi_hosts_limits;

struct smi_hosts {
	const char *names[SMI_HOSTS_MAX]; /* "host", "host:port", "::1", "[::1]:port"; each once */
	size_t count;
	const char *prometheus; /* URL, or NULL */
};

/* For the options: adds a host, or sets the Prometheus. 0, or -EINVAL. */
int smi_hosts_add(void *hosts, const char *text);
int smi_hosts_set_prometheus(void *hosts, const char *text);

/* Queries and prints. Return: exit code; 1 if any of them does not answer. */
int smi_hosts_run(const struct smi_hosts *hosts, bool json);
