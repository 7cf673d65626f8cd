/* SPDX-License-Identifier: Apache-2.0 */

/* One table of many machines, out of their smi documents or a Prometheus' answers. */

#include "cli/smi-hosts.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ttmem/ttmem.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/table.h"
#include "base/text.h"
#include "book/clock.h"
#include "cli/command.h"
#include "cli/fetch.h"
#include "cli/output.h"
#include "core/document.h"
#include "core/types.h"

#define HOSTS_PORT "5392"

/* Of one device; only of memory that has a name in both worlds. */
struct hosts_sums {
	uint64_t dram, dram_capacity, l1, l1_capacity, buffers;
};

static const struct table_column hosts_columns[] = {
	{"HOST", 24, false, true}, {"DEV", 4, true, false},     {"CARD", 18, false, true},
	{"DRAM", 10, true, false}, {"OF", 10, true, false},     {"L1", 10, true, false},
	{"OF", 10, true, false},   {"BUFFERS", 0, true, false},
};

int smi_hosts_add(void *hosts, const char *text)
{
	struct smi_hosts *self = hosts;

	if (!*text || strpbrk(text, "/ @?#") || self->count == SMI_HOSTS_MAX)
		return -EINVAL;
	self->names[self->count++] = text;
	return 0;
}

static uint64_t hosts_number(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
}

/* Traces lie in DRAM; small L1, circular buffers and kernels in L1. */
static bool hosts_is_l1(uint32_t type)
{
	return type == TTMEM_L1 || type == TTMEM_L1_SMALL || type == TTMEM_CB ||
	       type == TTMEM_KERNEL;
}

static void hosts_add_memory(struct hosts_sums *sums, uint32_t type, uint64_t used,
			     uint64_t capacity)
{
	if (hosts_is_l1(type))
		sums->l1 += used;
	else if (type == TTMEM_DRAM || type == TTMEM_TRACE)
		sums->dram += used;
	if (type == TTMEM_L1)
		sums->l1_capacity = bits_max(sums->l1_capacity, capacity);
	if (type == TTMEM_DRAM)
		sums->dram_capacity = bits_max(sums->dram_capacity, capacity);
}

static void hosts_row(struct table *table, const char *host, const char *device, const char *card,
		      const struct hosts_sums *sums)
{
	char number[TEXT_NUMBER_SIZE];

	table_text(table, host);
	table_text(table, device);
	table_text(table, card ? card : "-");
	table_text(table, text_size(sums->dram, number));
	table_text(table, sums->dram_capacity ? text_size(sums->dram_capacity, number) : "-");
	table_text(table, text_size(sums->l1, number));
	table_text(table, sums->l1_capacity ? text_size(sums->l1_capacity, number) : "-");
	table_format(table, "%" PRIu64, sums->buffers);
}

static void hosts_print_device(struct table *table, const char *host, const json_t *device,
			       struct hosts_sums *all)
{
	const json_t *memory = json_object_get(device, "memory");
	const char *card = json_string_value(json_object_get(device, "card"));
	const char *arch = json_string_value(json_object_get(device, "arch"));
	struct hosts_sums sums = {0};
	char number[24], name[64] = "-";

	for (uint32_t type = 0; type < BOOK_TYPES; type++) {
		const json_t *one = json_object_get(memory, types_name(type));

		hosts_add_memory(&sums, type, hosts_number(one, "used"),
				 hosts_number(one, "capacity"));
		sums.buffers += hosts_number(one, "buffers");
	}
	if (card || arch)
		snprintf(name, sizeof(name), "%s%s%s", card ? card : "", card && arch ? " " : "",
			 arch ? arch : "");
	snprintf(number, sizeof(number), "%" PRIu64, hosts_number(device, "device"));
	hosts_row(table, host, number, name, &sums);
	all->dram += sums.dram;
	all->l1 += sums.l1;
	all->buffers += sums.buffers;
}

/* The document of a host, NULL if it gave none that makes sense; then its problem is told. */
static json_t *hosts_parse(struct fetch *fetch)
{
	json_t *document = fetch->text ? json_loadb(fetch->text, fetch->length, 0, NULL) : NULL;
	const char *schema = json_string_value(json_object_get(document, "schema"));

	if (schema && strncmp(schema, "ttmem.smi/", 10) == 0)
		return document;
	if (!*fetch->problem)
		strcpy(fetch->problem, "its answer is no ttmem.smi");
	json_decref(document);
	return NULL;
}

static void hosts_print(const struct smi_hosts *hosts, struct fetch *fetches)
{
	struct hosts_sums all = {0};
	char dram[TEXT_NUMBER_SIZE], l1[TEXT_NUMBER_SIZE];
	uint64_t processes = 0;
	struct table table;

	table_begin(&table, stdout, hosts_columns, ARRAY_SIZE(hosts_columns));
	for (size_t i = 0; i < hosts->count; i++) {
		json_t *document = hosts_parse(&fetches[i]);
		const json_t *devices = json_object_get(document, "devices");

		for (size_t k = 0; k < json_array_size(devices); k++)
			hosts_print_device(&table, hosts->names[i], json_array_get(devices, k),
					   &all);
		if (!document || json_array_size(devices) == 0) {
			text_put(stdout, hosts->names[i]);
			printf("  (%s)\n", document ? "no device in use" : fetches[i].problem);
		}
		processes += json_array_size(json_object_get(document, "processes"));
		json_decref(document);
	}
	printf("%s of DRAM and %s of L1 in %" PRIu64 " buffers, %" PRIu64 " processes\n",
	       text_size(all.dram, dram), text_size(all.l1, l1), all.buffers, processes);
}

static void hosts_json(const struct smi_hosts *hosts, struct fetch *fetches)
{
	struct emit json = EMIT_INIT(stdout);

	document_open(&json, "ttmem.hosts/1", clock_ns(CLOCK_REALTIME));
	emit_open_array(&json, "hosts");
	for (size_t i = 0; i < hosts->count; i++) {
		json_t *document = hosts_parse(&fetches[i]);
		CLEANUP_FREE char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;

		emit_open_object(&json, NULL);
		emit_string(&json, "host", hosts->names[i]);
		if (text) {
			emit_raw(&json, "smi", text);
			emit_null(&json, "problem");
		} else {
			emit_null(&json, "smi");
			emit_string(&json, "problem", fetches[i].problem);
		}
		emit_close_object(&json);
		json_decref(document);
	}
	emit_close_array(&json);
	document_list_end(&json, true);
	emit_open_array(&json, "notes");
	emit_close_array(&json);
	emit_close_object(&json);
	emit_end(&json);
}

static int hosts_ask(const struct smi_hosts *hosts, bool json)
{
	CLEANUP_FREE struct fetch *fetches = calloc(hosts->count, sizeof(*fetches));
	bool all = true;
	int r = fetches ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < hosts->count; i++) {
		const char *name = hosts->names[i];
		bool has_port = strchr(strchr(name, ']') ? strchr(name, ']') : name, ':');

		if (asprintf(&fetches[i].url, "http://%s%s/api/v1/smi", name,
			     has_port ? "" : ":" HOSTS_PORT) < 0) {
			fetches[i].url = NULL;
			r = -ENOMEM;
		}
	}
	if (r == 0)
		r = fetch_all(fetches, hosts->count);
	if (r == 0 && json)
		hosts_json(hosts, fetches);
	else if (r == 0)
		hosts_print(hosts, fetches);
	for (size_t i = 0; fetches && i < hosts->count; i++) {
		all &= !*fetches[i].problem;
		fetch_deinit(&fetches[i]);
	}
	if (r < 0)
		return output_fail("smi", "cannot ask", r);
	return all ? output_finish() : (output_finish(), COMMAND_FAILED);
}

/* One sample: its labels, and the value as a number. */
static uint64_t hosts_sample(const json_t *sample, const json_t **ret_labels)
{
	const char *value = json_string_value(json_array_get(json_object_get(sample, "value"), 1));

	*ret_labels = json_object_get(sample, "metric");
	return value ? (uint64_t)strtod(value, NULL) : 0;
}

static const char *hosts_label(const json_t *labels, const char *key)
{
	const char *text = json_string_value(json_object_get(labels, key));

	return text ? text : "";
}

/* By host, then by device: 0 = the same one. */
static int hosts_differ(const json_t *a, const json_t *b)
{
	int r = strverscmp(hosts_label(a, "instance"), hosts_label(b, "instance"));

	return r ? r : strverscmp(hosts_label(a, "device"), hosts_label(b, "device"));
}

static int hosts_compare(const void *left, const void *right)
{
	const json_t *a, *b;

	(void)hosts_sample(*(json_t *const *)left, &a);
	(void)hosts_sample(*(json_t *const *)right, &b);
	return hosts_differ(a, b);
}

/* What a Prometheus knows: bytes, buffers and capacities of every device, by type. */
static void hosts_print_samples(const json_t *samples)
{
	size_t count = json_array_size(samples);
	CLEANUP_FREE const json_t **sorted = calloc(count + 1, sizeof(const json_t *));
	struct table table;

	if (!sorted)
		return;
	for (size_t i = 0; i < count; i++)
		sorted[i] = json_array_get(samples, i);
	qsort(sorted, count, sizeof(const json_t *), hosts_compare);
	table_begin(&table, stdout, hosts_columns, ARRAY_SIZE(hosts_columns));
	for (size_t i = 0; i < count;) {
		struct hosts_sums sums = {0};
		const json_t *first, *labels;

		(void)hosts_sample(sorted[i], &first);
		for (; i < count; i++) {
			uint64_t value = hosts_sample(sorted[i], &labels);
			const char *name = hosts_label(labels, "__name__");
			bool is_used = strcmp(name, "ttmem_device_bytes") == 0;
			uint32_t type;

			if (hosts_differ(labels, first))
				break;
			if (types_parse(hosts_label(labels, "type"), &type) < 0)
				continue;
			if (strcmp(name, "ttmem_device_buffers") == 0)
				sums.buffers += value;
			else
				hosts_add_memory(&sums, type, is_used ? value : 0,
						 is_used ? 0 : value);
		}
		hosts_row(&table, hosts_label(first, "instance"), hosts_label(first, "device"),
			  hosts_label(first, "uid"), &sums);
	}
}

static int hosts_ask_prometheus(const char *url, bool json)
{
	struct fetch fetch = {.length = 0};
	size_t end = strlen(url);
	json_t *document = NULL;
	const json_t *samples;
	int code = COMMAND_FAILED;

	while (end > 0 && url[end - 1] == '/')
		end--;
	if (asprintf(&fetch.url,
		     "%.*s/api/v1/query?query=%%7B__name__%%3D~%%22ttmem_device_"
		     "%%28bytes%%7Cbuffers%%7Ccapacity_bytes%%29%%22%%7D",
		     (int)end, url) < 0)
		return output_fail("smi", "cannot ask", -ENOMEM);
	if (fetch_all(&fetch, 1) == 0 && fetch.text)
		document = json_loadb(fetch.text, fetch.length, 0, NULL);
	samples = json_object_get(json_object_get(document, "data"), "result");
	if (!json_is_array(samples)) {
		fprintf(stderr, "ttmem smi: %s: %s\n", url,
			*fetch.problem ? fetch.problem : "its answer is not a Prometheus'");
	} else if (json) {
		(void)json_dumpf(samples, stdout, JSON_COMPACT); /* output_finish() tells */
		putchar('\n');
		code = output_finish();
	} else {
		hosts_print_samples(samples);
		code = output_finish();
	}
	json_decref(document);
	fetch_deinit(&fetch);
	return code;
}

int smi_hosts_run(const struct smi_hosts *hosts, bool json)
{
	return hosts->prometheus ? hosts_ask_prometheus(hosts->prometheus, json)
				 : hosts_ask(hosts, json);
}
