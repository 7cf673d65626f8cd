/* SPDX-License-Identifier: Apache-2.0 */

/* The same thing in words and as JSON. */

#include "daemon/notify/notice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "model/json/document.h"
#include "model/snapshot.h"
#include "model/types.h"

static struct news *news_new(const struct snapshot_process *process, const char *kind)
{
	struct news *news = calloc(1, sizeof(*news));

	if (!news)
		return NULL;
	news->kind = kind;
	news->pid = process->pid;
	news->user = process->user_id;
	news->count = 1;
	news->type = SNAPSHOT_TYPE_NONE;
	news->is_old_client = strcmp(process->source, "socket") == 0;
	(void)snprintf(news->comm, sizeof(news->comm), "%s", process->comm);
	return news;
}

struct news *news_free(struct news *news)
{
	while (news) {
		struct news *next = news->next;

		free(news->json);
		free(news->text);
		free(news);
		news = next;
	}
	return NULL;
}

/* Both streams are closed in any case. */
static struct news *news_finish(struct news *news, FILE *json, FILE *text)
{
	int r = 0;

	if (json)
		r |= fclose(json);
	if (text)
		r |= fclose(text);
	return r == 0 && json && text ? news : news_free(news);
}

static void news_incident_text(FILE *out, const struct news *news,
			       const struct snapshot_incident *incident)
{
	const char *type = types_name(incident->type);
	char number[TEXT_NUMBER_SIZE];

	fprintf(out, "⚠️  %s: pid %" PRIu32 " (", incident->kind, news->pid);
	text_put(out, news->comm);
	fprintf(out, "), device %" PRIu32 "%s%s", incident->device, type ? ", " : "",
		type ? type : "");
	if (incident->has_address)
		fprintf(out, ", address 0x%" PRIx64, incident->address);
	if (incident->size)
		fprintf(out, ", %s", text_size(incident->size, number));
	if (incident->second.name) {
		fputs(", \"", out);
		text_put(out, incident->second.name);
		fputc('"', out);
	}
	if (news->count > 1)
		fprintf(out, ", %" PRIu64 " times", news->count);
	fputc('\n', out);
}

struct news *news_new_incident(const struct snapshot *snapshot,
			       const struct snapshot_incident *incident, uint64_t more)
{
	struct news *news = news_new(&snapshot->processes[incident->process], incident->kind);
	FILE *json, *text;
	struct emit emit;

	if (!news)
		return NULL;
	news->device = incident->device;
	news->type = incident->type;
	news->bytes = incident->size;
	news->count = more;
	json = open_memstream(&news->json, &news->json_length);
	text = open_memstream(&news->text, &news->text_length);
	if (json && text) {
		emit = EMIT_INIT(json);
		document_incident(&emit, snapshot, incident);
		news_incident_text(text, news, incident);
	}
	return news_finish(news, json, text);
}

/* As the old documents promised it, letter for letter. */
static void news_leak_text(FILE *out, const struct snapshot *snapshot, const struct news *news,
			   uint32_t process)
{
	uint64_t shown = 0;
	char number[TEXT_NUMBER_SIZE];

	if (news->is_totals_only) {
		fprintf(out, "⚠️  Process %" PRIu32 " (", news->pid);
		text_put(out, news->comm);
		fprintf(out,
			") exited but left %s allocated, as tt-metal's region tells; its buffers "
			"are "
			"not known\n",
			text_size(news->bytes, number));
		return;
	}
	fprintf(out, "⚠️  Process %" PRIu32 " exited but left %" PRIu64 " buffers allocated:\n",
		news->pid, news->buffers);
	for (size_t i = 0; i < snapshot->buffer_count && shown < NEWS_LINES_MAX; i++) {
		const struct snapshot_buffer *buffer = &snapshot->buffers[i];
		uint64_t age = snapshot->time_ns > buffer->born_ns
				       ? snapshot->time_ns - buffer->born_ns
				       : 0;

		if (buffer->process != process)
			continue;
		fprintf(out,
			"    [Device %" PRIu32 "] Buffer 0x%" PRIx64 ": %" PRIu64
			" bytes %s (age: %" PRIu64 "s)",
			buffer->device, buffer->address, buffer->size, types_name(buffer->type),
			age / NS_PER_S);
		if (buffer->name) {
			fputs(" \"", out);
			text_put(out, buffer->name);
			fputc('"', out);
		}
		fputc('\n', out);
		shown++;
	}
	if (news->buffers > shown)
		fprintf(out,
			"    ... and %" PRIu64 " more: see \"ttmem leaks --pid %" PRIu32 "\"\n",
			news->buffers - shown, news->pid);
}

static void news_leak_json(FILE *out, const struct snapshot *snapshot, const struct news *news,
			   uint32_t process, const struct news_ending *ending)
{
	struct emit emit = EMIT_INIT(out);
	size_t shown = 0;

	emit_open_object(&emit, NULL);
	emit_string(&emit, "kind", "leak");
	emit_u64(&emit, "time_ns", ending->ended_ns);
	emit_u64(&emit, "last_ns", ending->ended_ns);
	emit_u64(&emit, "pid", news->pid);
	emit_string(&emit, "comm", news->comm);
	emit_u64(&emit, "user_id", news->user);
	emit_string(&emit, "how", ending->how);
	/* Once as reports of the dead have it, once as incidents do: readers of the stream know those. */
	emit_u64(&emit, "bytes", news->bytes);
	emit_u64(&emit, "size", news->bytes);
	emit_u64(&emit, "count", news->buffers);
	emit_open_array(&emit, "buffers");
	for (size_t i = 0; i < snapshot->buffer_count && shown < NEWS_BUFFERS_MAX; i++) {
		if (snapshot->buffers[i].process != process)
			continue;
		document_buffer(&emit, snapshot, &snapshot->buffers[i]);
		shown++;
	}
	emit_close_array(&emit);
	emit_bool(&emit, "complete", !news->is_totals_only && shown == news->buffers);
	emit_close_object(&emit);
}

/* The old server told circular buffers and kernels apart from the rest. */
static void news_count_dead(struct legacy_lines_dead *dead, const struct snapshot_process *process)
{
	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			const struct snapshot_memory *memory = &process->parts[i].memory[type];
			bool is_cb = type == TYPES_CB, is_kernel = type == TYPES_KERNEL;
			uint64_t *buffers = is_cb       ? &dead->cbs
					    : is_kernel ? &dead->kernels
							: &dead->buffers;
			uint64_t *bytes = is_cb       ? &dead->cb_bytes
					  : is_kernel ? &dead->kernel_bytes
						      : &dead->bytes;

			*buffers += memory->buffers;
			*bytes += memory->used;
		}
	}
}

struct news *news_new_leak(const struct snapshot *snapshot, uint32_t process,
			   const struct news_ending *ending)
{
	struct news *news = news_new(&snapshot->processes[process], "leak");
	const struct snapshot_process *who = &snapshot->processes[process];
	uint64_t listed = 0;
	FILE *json, *text;

	if (!news)
		return NULL;
	news->is_totals_only = who->books == 0;
	if (who->part_count > 0)
		news->device = who->parts[0].device;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot->buffers[i].process != process)
			continue;
		if (listed == 0)
			news->device = snapshot->buffers[i].device;
		listed++;
	}
	/* Of very many only the largest are in the snapshot; the counters know all. */
	snapshot_process_totals(who, &news->bytes, &news->buffers);
	news->buffers = bits_max(news->buffers, listed);
	news->dead.pid = news->pid;
	news_count_dead(&news->dead, who);
	json = open_memstream(&news->json, &news->json_length);
	text = open_memstream(&news->text, &news->text_length);
	if (json && text) {
		news_leak_json(json, snapshot, news, process, ending);
		news_leak_text(text, snapshot, news, process);
	}
	return news_finish(news, json, text);
}
