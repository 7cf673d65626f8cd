/* SPDX-License-Identifier: Apache-2.0 */

/* For tests: collects the results of queries. */

#include "store/testing/store-testing-rows.h"

#include <stdio.h>
#include <string.h>

#include "base/testing/unit.h"
#include "model/testing/testing-stack.h"
#include "store/testing/store-testing.h"

const struct store_filter testing_everything;

static const char *testing_told_text(struct testing_told *told, const char *text)
{
	char *copy = told->texts[told->text_count++ % 64];

	if (!text)
		return NULL;
	snprintf(copy, 256, "%s", text);
	return copy;
}

static const struct stack *told_stack(const struct stack *stack)
{
	return stack_copy(&testing_stacks, stack);
}

static void testing_told_process(struct testing_told *told, struct store_process *process)
{
	process->comm = testing_told_text(told, process->comm);
	process->user = testing_told_text(told, process->user);
	process->container = testing_told_text(told, process->container);
	process->source = testing_told_text(told, process->source);
}

int testing_told_leak(void *context, const struct store_leak *leak)
{
	struct testing_told *told = context;

	told->leaks++;
	told->leak = *leak;
	testing_told_process(told, &told->leak.process);
	return 0;
}

static int testing_told_part(void *context, const struct store_part *part)
{
	struct testing_told *told = context;

	told->parts++;
	told->part = *part;
	told->part.name = testing_told_text(told, part->name);
	told->part.phase = testing_told_text(told, part->phase);
	told->part.phases = testing_told_text(told, part->phases);
	told->part.names = testing_told_text(told, part->names);
	return 0;
}

static int testing_told_buffer(void *context, const struct snapshot_buffer *buffer,
			       uint64_t device_uid)
{
	struct testing_told *told = context;

	told->buffers++;
	told->buffer = *buffer;
	told->buffer_uid = device_uid;
	told->buffer.name = testing_told_text(told, buffer->name);
	told->buffer.phase = testing_told_text(told, buffer->phase);
	return 0;
}

int testing_told_incident(void *context, const struct store_incident *incident)
{
	struct testing_told *told = context;

	told->incidents++;
	told->incident = *incident;
	testing_told_process(told, &told->incident.process);
	told->incident.site.kind = testing_told_text(told, incident->site.kind);
	told->incident.site.comm = testing_told_text(told, incident->site.comm);
	told->incident.site.name = testing_told_text(told, incident->site.name);
	told->incident.site.phase = testing_told_text(told, incident->site.phase);
	told->incident.site.stack = told_stack(incident->site.stack);
	told->incident.site.devices = testing_told_text(told, incident->site.devices);
	told->incident.example.first.name = testing_told_text(told, incident->example.first.name);
	told->incident.example.first.phase = testing_told_text(told, incident->example.first.phase);
	told->incident.example.second.name = testing_told_text(told, incident->example.second.name);
	told->incident.example.second.phase =
		testing_told_text(told, incident->example.second.phase);
	told->incident.example.first.stack = told_stack(incident->example.first.stack);
	told->incident.example.second.stack = told_stack(incident->example.second.stack);
	told->incident.example.explanation = testing_told_text(told, incident->example.explanation);
	return 0;
}

static int testing_told_holder(void *context, const struct store_holder *holder)
{
	struct testing_told *told = context;

	told->holders++;
	told->holder = *holder;
	testing_told_process(told, &told->holder.process);
	return 0;
}

struct testing_told testing_told_leaks(struct testing_world *world,
				       const struct store_filter *filter)
{
	static struct testing_told told;
	struct store_leak_rows rows = {&told, testing_told_leak, testing_told_part,
				       testing_told_buffer};
	struct store_reader *reader;
	struct store_cursor next;

	memset(&told, 0, sizeof(told));
	assert(store_reader_open(world->store, &reader) == 0);
	assert(store_query_leaks(reader, filter, &rows, &next) == 0);
	store_reader_close(reader);
	return told;
}

struct testing_told testing_told_incidents(struct testing_world *world,
					   const struct store_filter *filter)
{
	static struct testing_told told;
	struct store_incident_rows rows = {&told, testing_told_incident, testing_told_holder,
					   testing_told_part};
	struct store_reader *reader;
	struct store_cursor next;

	memset(&told, 0, sizeof(told));
	assert(store_reader_open(world->store, &reader) == 0);
	assert(store_query_incidents(reader, filter, &rows, &next) == 0);
	store_reader_close(reader);
	return told;
}
