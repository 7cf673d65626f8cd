/* SPDX-License-Identifier: Apache-2.0 */

/* Formats a notice as text and as JSON. */

#include "daemon/notify/notice.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/document.h"
#include "answers/ended.h"
#include "answers/incidents.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/emit.h"
#include "base/text.h"
#include "model/sites/site-rows.h"
#include "model/sites/stack.h"
#include "model/snapshot.h"
#include "model/types.h"

static struct notice *notice_new(const struct snapshot_process *process, const char *kind)
{
	struct notice *notice = calloc(1, sizeof(*notice));

	if (!notice)
		return NULL;
	notice->kind = kind;
	notice->pid = process->id.pid;
	notice->user = process->user_id;
	notice->maker = process->maker_id;
	/* Without memory they are not known: then only those see it who see all. */
	notice->namespaces = process->namespaces ? strdup(process->namespaces) : NULL;
	notice->count = 1;
	notice->type = SNAPSHOT_TYPE_NONE;
	notice->is_old_client = strcmp(process->source, "socket") == 0;
	(void)snprintf(notice->comm, sizeof(notice->comm), "%s", process->comm);
	if (process->user)
		(void)snprintf(notice->user_name, sizeof(notice->user_name), "%s", process->user);
	return notice;
}

struct notice *notice_free(struct notice *notice)
{
	while (notice) {
		struct notice *next = notice->next;

		free(notice->namespaces);
		free(notice->json);
		free(notice->text);
		free(notice->stack);
		free(notice->site);
		free(notice->function);
		free(notice->file);
		free(notice);
		notice = next;
	}
	return NULL;
}

/* Closes both streams in any case. */
static struct notice *notice_finish(struct notice *notice, FILE *json, FILE *text)
{
	int r = 0;

	if (json)
		r |= fclose(json);
	if (text)
		r |= fclose(text);
	return r == 0 && json && text ? notice : notice_free(notice);
}

/* "load (model.py:12) <- main (model.py:40)". NULL: there are no frames, or no memory. */
static char *notice_stack(const struct stack *stack)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = stack ? open_memstream(&text, &length) : NULL;

	for (size_t i = 0; out && i < stack->count && i < NOTICE_FRAMES_MAX; i++) {
		const struct frame *frame = &stack->frames[i];

		fprintf(out, "%s%s", i ? STACK_CALLED_BY : "",
			frame->function ? frame->function : "?");
		if (frame->file)
			fprintf(out, " (%s:%" PRIu32 ")", frame->file, frame->line);
	}
	if (out && fclose(out) != 0) {
		free(text);
		text = NULL;
	}
	return text;
}

/* The stack of who did it, and the frame that stands for it. */
static void notice_set_stack(struct notice *notice, const struct stack *stack)
{
	const struct frame *frame = site_find(stack);
	char site[NOTICE_SITE_MAX];

	notice->stack = notice_stack(stack);
	if (!frame)
		return;
	if (*site_rows_single(stack, site, sizeof(site)))
		notice->site = strdup(site);
	if (frame->function && !frame_is_address(frame))
		notice->function = strndup(frame->function, NOTICE_SITE_MAX);
	if (frame->file)
		notice->file = strndup(frame->file, NOTICE_SITE_MAX);
	notice->line = frame->line;
}

static void notice_incident_text(FILE *out, const struct snapshot *snapshot,
				 const struct notice *notice,
				 const struct snapshot_incident *incident)
{
	const char *type = types_name(incident->type);
	char number[TEXT_NUMBER_SIZE];

	fprintf(out, "⚠️  %s: pid %" PRIu32 " (", incident->kind, notice->pid);
	text_put(out, notice->comm);
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
	if (incident->has_other) {
		fprintf(out, ", overlaps with pid %" PRIu32 " (",
			snapshot->processes[incident->other].id.pid);
		text_put(out, snapshot->processes[incident->other].comm);
		fputc(')', out);
	}
	if (notice->count > 1)
		fprintf(out, ", %" PRIu64 " times", notice->count);
	fputc('\n', out);
}

/* Whether the second party is the one who did it. */
static bool notice_has_second(const struct snapshot_incident *incident)
{
	return incident->second.known && incident->second.stack &&
	       strcmp(incident->kind, TYPES_HELD_AT_CLOSE) != 0;
}

struct notice *notice_new_incident(const struct snapshot *snapshot,
				   const struct snapshot_incident *incident, uint64_t more)
{
	struct notice *notice = notice_new(&snapshot->processes[incident->process], incident->kind);
	FILE *json, *text;
	struct emit emit;

	if (!notice)
		return NULL;
	notice->device = incident->device;
	notice->type = incident->type;
	notice->bytes = incident->size;
	notice->count = more;
	notice_set_stack(notice, notice_has_second(incident) ? incident->second.stack
							     : incident->first.stack);
	json = open_memstream(&notice->json, &notice->json_length);
	text = open_memstream(&notice->text, &notice->text_length);
	if (json && text) {
		emit = EMIT_INIT(json);
		incident_put(&emit, snapshot, incident);
		notice_incident_text(text, snapshot, notice, incident);
	}
	return notice_finish(notice, json, text);
}

/* The exact text that the old server's documents promise. */
static void notice_leak_text(FILE *out, const struct snapshot *snapshot,
			     const struct notice *notice, uint32_t process)
{
	uint64_t shown = 0;
	char number[TEXT_NUMBER_SIZE];

	if (notice->is_totals_only) {
		fprintf(out, "⚠️  Process %" PRIu32 " (", notice->pid);
		text_put(out, notice->comm);
		fprintf(out,
			") exited but left %s allocated, as tt-metal's region tells; its buffers "
			"are "
			"not known\n",
			text_size(notice->bytes, number));
		return;
	}
	fprintf(out, "⚠️  Process %" PRIu32 " exited but left %" PRIu64 " buffers allocated:\n",
		notice->pid, notice->buffers);
	for (size_t i = 0; i < snapshot->buffer_count && shown < NOTICE_LINES_MAX; i++) {
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
	if (notice->buffers > shown)
		fprintf(out,
			"    ... and %" PRIu64 " more: see \"ttmem leaks --pid %" PRIu32 "\"\n",
			notice->buffers - shown, notice->pid);
}

struct notice_leak {
	const char *kind;
	struct leaks_row leak;
	bool is_partial;
};

#define ROW struct notice_leak

static const struct field notice_leak_fields[] = {
	FIELD("kind", TEXT, kind),
	FIELD("time_ns", TIME, leak.ended.ended_ns),
	FIELD("last_ns", TIME, leak.ended.ended_ns),
	FIELD("pid", SHORT, leak.ended.pid),
	FIELD("comm", TEXT, leak.ended.comm),
	FIELD("user_id", SHORT, leak.ended.user_id),
	FIELD("how", TEXT, leak.ended.how),
	FIELD_POINTED("exit", leak.ended.exit, ended_exit_fields),
	/* Twice: as in reports of exited processes, and as in incidents, whose readers expect it. */
	FIELD("bytes", BYTES, leak.ended.bytes),
	FIELD("size", BYTES, leak.ended.bytes),
	FIELD("count", NUMBER, leak.ended.buffers),
	FIELD_MORE_OF(leak, leaks_buffers),
	FIELD("complete", NOT, is_partial),
	FIELD_END,
};

static void notice_leak_json(FILE *out, const struct notice *notice, const struct leaks_row *leak,
			     const struct snapshot_process *process, const struct ending *ending)
{
	struct emit emit = EMIT_INIT(out);
	struct ended_room room;
	struct notice_leak row = {.kind = "leak", .leak = *leak};
	struct ended_row *ended = &row.leak.ended;

	*ended = ended_row_of(process, ending, &room);
	ended->comm = notice->comm;
	ended->bytes = notice->bytes;
	ended->buffers = notice->buffers;
	if (ended->execed)
		ended->how = "execed";
	row.is_partial = notice->is_totals_only || leak->listed != notice->buffers;
	fields_put_row(&emit, notice_leak_fields, &row);
}

/* The type of all that a process has left; SNAPSHOT_TYPE_NONE = several, or nothing. */
static uint32_t notice_single_type(const struct snapshot_process *process)
{
	uint32_t found = SNAPSHOT_TYPE_NONE;

	for (size_t i = 0; i < process->part_count; i++) {
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			if (process->parts[i].memory[type].buffers == 0 || type == found)
				continue;
			if (found != SNAPSHOT_TYPE_NONE)
				return SNAPSHOT_TYPE_NONE;
			found = type;
		}
	}
	return found;
}

/* The old server counted circular buffers and kernels separately. */
static void notice_count_dead(struct seed_lines_dead *dead, const struct snapshot_process *process)
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

struct notice *notice_new_leak(const struct snapshot *snapshot, uint32_t process,
			       const struct ending *ending)
{
	struct notice *notice = notice_new(&snapshot->processes[process], "leak");
	const struct snapshot_process *who = &snapshot->processes[process];
	struct leaks_row leak = {0};
	FILE *json, *text;

	if (!notice)
		return NULL;
	notice->is_totals_only = who->books == 0;
	notice->type = notice_single_type(who);
	if (who->part_count > 0)
		notice->device = who->parts[0].device;
	for (size_t i = 0; i < snapshot->buffer_count; i++) {
		if (snapshot->buffers[i].process != process)
			continue;
		notice->device = snapshot->buffers[i].device;
		notice_set_stack(notice, snapshot->buffers[i].stack);
		break;
	}
	/* If there are very many, the snapshot has only the largest; the counters cover all. */
	leaks_row_count(&leak, snapshot, process, NOTICE_BUFFERS_MAX);
	snapshot_process_totals(who, &notice->bytes, &notice->buffers);
	notice->buffers = bits_max(notice->buffers, leak.ended.buffers);
	notice->dead.pid = notice->pid;
	notice_count_dead(&notice->dead, who);
	json = open_memstream(&notice->json, &notice->json_length);
	text = open_memstream(&notice->text, &notice->text_length);
	if (json && text) {
		notice_leak_json(json, notice, &leak, who, ending);
		notice_leak_text(text, snapshot, notice, process);
	}
	return notice_finish(notice, json, text);
}
