/* SPDX-License-Identifier: Apache-2.0 */

/* Takes samples out of the JSON of its interface for queries. */

#include "source/fleet/prometheus.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const char *prometheus_label(const json_t *labels, const char *key)
{
	const char *text = json_string_value(json_object_get(labels, key));

	return text ? text : "";
}

static uint64_t prometheus_value(const json_t *sample)
{
	const char *text = json_string_value(json_array_get(json_object_get(sample, "value"), 1));
	double value = text ? strtod(text, NULL) : 0;

	if (!(value > 0))
		return 0;
	return value < 0x1p63 ? (uint64_t)value : INT64_MAX;
}

int prometheus_parse(struct prometheus *ret_answer, const char *text, size_t length)
{
	struct prometheus_sample *sample;
	const json_t *list;

	*ret_answer = (struct prometheus){.document = json_loadb(text, length, 0, NULL)};
	list = json_object_get(json_object_get(ret_answer->document, "data"), "result");
	if (!json_is_array(list))
		return -EBADMSG;
	sample = calloc(json_array_size(list) + 1, sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	ret_answer->samples = sample;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *labels = json_object_get(json_array_get(list, i), "metric");

		if (!json_is_object(labels))
			continue;
		*sample++ = (struct prometheus_sample){
			.name = prometheus_label(labels, "__name__"),
			.cluster = prometheus_label(labels, "cluster"),
			.instance = prometheus_label(labels, "instance"),
			.device = prometheus_label(labels, "device"),
			.uid = prometheus_label(labels, "uid"),
			.type = prometheus_label(labels, "type"),
			.value = prometheus_value(json_array_get(list, i)),
		};
	}
	ret_answer->count = (size_t)(sample - ret_answer->samples);
	return 0;
}

int prometheus_ask(struct prometheus *ret_answer, const char *url, const char *query,
		   const char *token, const struct http_fetch_limits *limits)
{
	CLEANUP(http_fetch_deinit) struct http_fetch fetch = {.token = token};
	size_t end = strlen(url);
	int r = -EBADMSG;

	*ret_answer = (struct prometheus){.count = 0};
	while (end > 0 && url[end - 1] == '/')
		end--;
	if (asprintf(&fetch.url, "%.*s/api/v1/query?query=%s", (int)end, url, query) < 0) {
		fetch.url = NULL;
		return -ENOMEM;
	}
	if (http_fetch_all(&fetch, 1, limits) == 0 && fetch.text)
		r = prometheus_parse(ret_answer, fetch.text, fetch.length);
	if (r != -EBADMSG)
		return r;
	(void)snprintf(ret_answer->problem, sizeof(ret_answer->problem), "%s",
		       *fetch.problem ? fetch.problem : "its answer is not a Prometheus'");
	return 0;
}

void prometheus_deinit(struct prometheus *answer)
{
	free(answer->samples);
	json_decref(answer->document);
	*answer = (struct prometheus){.count = 0};
}
