/* SPDX-License-Identifier: Apache-2.0 */

/* The past of an address; the header tells the idea. */

#include "cli/history-past.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cli/recall.h"
#include "core/filter.h"
#include "core/snapshot.h"
#include "source/remote.h"

void history_past_deinit(struct history_past *past)
{
	free(past->leaks);
	free(past->incidents);
}

/* Two JSON arrays made one; @first: NULL = none. NULL: no memory. */
static char *history_past_join(const char *first, const char *second)
{
	char *joined = NULL;
	bool both = first && strcmp(first, "[]") != 0 && strcmp(second, "[]") != 0;

	if (!first || strcmp(first, "[]") == 0)
		return strdup(second);
	if (asprintf(&joined, "%.*s%s%s", (int)bits_min(strlen(first) - 1, INT32_MAX), first,
		     both ? "," : "", second + 1) < 0)
		return NULL;
	return joined;
}

static int history_past_add(struct remote *remote, const struct native_request *request,
			    const char *list, char **rows)
{
	CLEANUP_FREE char *more = NULL;
	char *joined;
	int r = recall_list(remote, request, list, &more);

	if (r != 0)
		return r;
	joined = history_past_join(*rows, more);
	free(*rows);
	*rows = joined;
	return joined ? 0 : -ENOMEM;
}

int history_past_ask(struct remote *remote, const struct filter *filter, uint64_t address,
		     struct history_past *ret_past)
{
	CLEANUP(history_past_deinit) struct history_past past = {.leaks = NULL};
	struct native_request request;
	int r = 0;

	/* A question names one device, or all. */
	for (uint32_t i = 0; r == 0 && i < bits_max(filter->device_count, 1u); i++) {
		const struct filter_device *device = &filter->devices[i];

		native_request_init(&request, NATIVE_LEAKS);
		request.want = NATIVE_WANT_ADDRESS;
		request.address = address;
		request.pid = filter->has_pid ? filter->pid : 0;
		request.type = filter->has_type ? filter->type : NATIVE_ANY;
		request.limit = 1000; /* most of them have nothing at this address */
		if (filter->device_count > 0 && device->by_id)
			request.device_uid = device->value;
		else if (filter->device_count > 0)
			request.device = (uint32_t)device->value;
		r = history_past_add(remote, &request, "processes", &past.leaks);
		request.kind = NATIVE_INCIDENTS;
		if (r == 0)
			r = history_past_add(remote, &request, "incidents", &past.incidents);
	}
	if (r != 0)
		return r;
	ret_past->leaks = cleanup_steal(past.leaks);
	ret_past->incidents = cleanup_steal(past.incidents);
	return 0;
}

static bool history_past_lives(const struct snapshot *snapshot, uint64_t pid)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].pid == pid && snapshot->processes[i].alive)
			return true;
	}
	return false;
}

static void history_past_who(const json_t *row, const char *time, uint64_t now)
{
	const char *comm = recall_text(row, "comm");
	uint64_t then = recall_number(row, time);
	char number[TEXT_NUMBER_SIZE];

	printf("  pid %" PRIu64 " (", recall_number(row, "pid"));
	text_put(stdout, comm ? comm : "?");
	printf("), %s ago: ", text_duration(now > then ? now - then : 0, number));
}

static void history_past_what(const json_t *row)
{
	const char *type = recall_text(row, "type"), *name = recall_text(row, "name");
	char number[TEXT_NUMBER_SIZE];

	printf("%s of %s on device %" PRIu64, text_size(recall_number(row, "size"), number),
	       type ? type : "?", recall_number(row, "device"));
	if (name) {
		printf(", \"");
		text_put(stdout, name);
		putchar('"');
	}
	putchar('\n');
}

static size_t history_past_print_leaks(const json_t *rows, uint64_t now)
{
	size_t count = 0;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const json_t *buffers = json_object_get(row, "buffers");

		for (size_t k = 0; k < json_array_size(buffers); k++) {
			if (count++ == 0)
				puts("Remembered of ended processes:");
			history_past_who(row, "ended_ns", now);
			printf("left ");
			history_past_what(json_array_get(buffers, k));
		}
	}
	return count;
}

static size_t history_past_print_incidents(const json_t *rows, const struct snapshot *snapshot,
					   size_t count)
{
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *kind = recall_text(row, "kind");

		if (history_past_lives(snapshot, recall_number(row, "pid")))
			continue;
		if (count++ == 0)
			puts("Remembered of ended processes:");
		history_past_who(row, "last_ns", snapshot->time_ns);
		text_put(stdout, kind ? kind : "incident");
		printf(", ");
		history_past_what(row);
	}
	return count;
}

bool history_past_print(const struct history_past *past, const struct snapshot *snapshot)
{
	json_t *leaks = json_loads(past->leaks, JSON_DECODE_INT_AS_REAL, NULL);
	json_t *incidents = json_loads(past->incidents, JSON_DECODE_INT_AS_REAL, NULL);
	size_t count = history_past_print_leaks(leaks, snapshot->time_ns);

	count = history_past_print_incidents(incidents, snapshot, count);
	json_decref(leaks);
	json_decref(incidents);
	return count > 0;
}
