/* SPDX-License-Identifier: Apache-2.0 */

/* The old server's lines. */

#include "legacy/server/legacy-log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/seed-lines.h"
#include "base/bits.h"
#include "book/write/writer.h"
#include "daemon/notify/log-writer.h"
#include "legacy/server/legacy-history.h"
#include "legacy/wire/legacy.h"
#include "model/types.h"
#include "source/proc/proc.h"

#define LOG_ROOM 16384u

/* Where lines go; errors may go elsewhere. */
struct log_stream {
	struct log_writer *log_writer;
	size_t length;
	char text[LOG_ROOM];
};

struct legacy_log {
	struct legacy_log_config config;
	uint64_t total[BOOK_DEVICES][2]; /* circular buffers, kernels: of all old clients */
	struct log_stream lines, errors;
};

struct legacy_log *legacy_log_new(const struct legacy_log_config *config)
{
	struct legacy_log *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->config = *config;
	log->lines.log_writer = config->log_writer;
	log->errors.log_writer = config->errors;
	return log;
}

struct legacy_log *legacy_log_free(struct legacy_log *log)
{
	if (log)
		legacy_log_flush(log);
	free(log);
	return NULL;
}

static void log_flush(struct log_stream *stream)
{
	if (stream->length == 0)
		return;
	(void)log_writer_put(stream->log_writer, stream->text,
			     stream->length); /* the log writer reports what is dropped */
	stream->length = 0;
}

void legacy_log_flush(struct legacy_log *log)
{
	if (!log)
		return;
	log_flush(&log->lines);
	log_flush(&log->errors);
}

static void log_put(struct log_stream *stream, const char *text, size_t length)
{
	if (stream->length + length > sizeof(stream->text))
		log_flush(stream);
	memcpy(stream->text + stream->length, text, length);
	stream->length += length;
}

static __attribute__((format(printf, 2, 3))) void log_print(struct log_stream *stream,
							    const char *format, ...)
{
	char text[SEED_LINES_SIZE];
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (n > 0)
		log_put(stream, text, bits_min((size_t)n, sizeof(text) - 1));
}

void legacy_log_pieces(struct log_writer *log_writer, const char *text, size_t length)
{
	while (length > 0) {
		size_t piece = bits_min(length, LOG_ROOM);
		const char *end = length > piece ? memrchr(text, '\n', piece) : NULL;

		if (end)
			piece = (size_t)(end - text) + 1;
		(void)log_writer_put(log_writer, text, piece); /* it reports what it drops */
		text += piece;
		length -= piece;
	}
}

void legacy_log_banner(struct legacy_log *log, const char *path)
{
	log_print(&log->lines, "%s\n",
		  log->config.history
			  ? "🚀 Enhanced Allocation Server started (with history tracking)"
			  : "🚀 Allocation Server started");
	log_print(&log->lines, "   Listening on: %s\n", path);
	log_print(&log->lines, "   Press Ctrl+C to stop\n");
	log_print(&log->lines, "🔄 Background cleanup thread started (checking every 10s)\n");
	legacy_log_flush(log);
}

static struct log_stream *log_errors(struct legacy_log *log)
{
	return log->errors.log_writer ? &log->errors : &log->lines;
}

void legacy_log_bad_device(struct legacy_log *log, const struct legacy_message *message)
{
	log_print(log_errors(log), "⚠️  Invalid device_id %" PRId32 " - ignoring message\n",
		  message->device);
}

void legacy_log_bad_size(struct legacy_log *log, const struct legacy_message *message)
{
	log_print(log_errors(log), "⚠️  Invalid size %" PRIu64 " - ignoring message\n",
		  message->size);
}

/* The servers of the time said it in two ways. */
void legacy_log_bad_type(struct legacy_log *log, const struct legacy_message *message)
{
	if (message->dialect == LEGACY_W144 || message->dialect == LEGACY_W128)
		log_print(log_errors(log),
			  "⚠️  Invalid buffer_type %u for buffer %" PRIu64 " on device %" PRId32
			  "\n",
			  message->buffer_type, message->id, message->device);
	else
		log_print(log_errors(log),
			  "⚠ [PID %" PRId32 "] Invalid buffer_type %u for buffer %" PRIu64
			  " on device %" PRId32 "\n",
			  message->pid, message->buffer_type, message->id, message->device);
}

void legacy_log_dead(struct legacy_log *log, const struct seed_lines_dead *dead)
{
	char text[SEED_LINES_SIZE];

	if (dead->buffers + dead->cbs + dead->kernels == 0)
		return;
	log_put(&log->lines, text, seed_lines_dead(dead, text));
	legacy_log_flush(log);
}

static uint64_t *log_total(struct legacy_log *log, uint32_t device, uint32_t type)
{
	if (type != TYPES_CB && type != TYPES_KERNEL)
		return NULL;
	return &log->total[device][type == TYPES_KERNEL];
}

void legacy_log_add(struct legacy_log *log, uint32_t device, uint32_t type, uint64_t bytes)
{
	uint64_t *total = log ? log_total(log, device, type) : NULL;

	if (total)
		*total += bytes;
}

void legacy_log_subtract(struct legacy_log *log, uint32_t device, uint32_t type, uint64_t bytes)
{
	uint64_t *total = log ? log_total(log, device, type) : NULL;

	if (total)
		*total -= bits_min(bytes, *total);
}

uint64_t legacy_log_head(const struct writer *writer, uint32_t device)
{
	const struct shard *shard = writer->shards[device];

	return shard ? shard->head : 0;
}

static uint32_t log_kernel_sort(const struct writer *writer, uint32_t shape)
{
	const struct book_arena *arena =
		(const struct book_arena *)(const void *)(writer->base + BOOK_ARENAS_OFFSET) +
		BOOK_ARENA_SHAPES;
	uint64_t offset = (uint64_t)shape * sizeof(struct book_shape);
	uint64_t segment = (uint64_t)BOOK_ARENA_UNITS * BOOK_UNIT;
	struct book_shape found;

	if (shape == 0 || offset >= arena->used)
		return 0;
	memcpy(&found,
	       writer->base + book_unit_offset(arena->directory[offset / segment]) +
		       offset % segment,
	       sizeof(found));
	return found.kernel_sort;
}

void legacy_log_events(struct legacy_log *log, const struct writer *writer,
		       const struct proc_facts *owner, uint32_t device, uint64_t before)
{
	const struct shard *shard = writer->shards[device];

	/* One message is two events at most, and the log holds thousands. */
	for (uint64_t n = before + 1; shard && n <= shard->head; n++) {
		const struct book_event *event = &shard->ring[n & shard->ring_mask];
		uint32_t type = book_meta_type(event->record.meta);
		uint32_t op = event->op_slot & BOOK_OP_MASK;
		struct seed_lines_event line = {
			.event = event,
			.uid = owner->real_uid,
			.pid = owner->id.pid,
			.device = device,
			.decimal = log->config.decimal_ids,
		};
		char text[LEGACY_HISTORY_SIZE];
		const uint64_t *total;

		if (op == BOOK_OP_ALLOC)
			legacy_log_add(log, device, type, event->record.size);
		else if (op == BOOK_OP_FREE)
			legacy_log_subtract(log, device, type, event->record.size);
		total = log_total(log, device, type);
		if (total && seed_lines_has_total(event)) {
			line.total = *total;
			line.kernel_sort = log_kernel_sort(writer, event->record.shape);
		}
		log_put(&log->lines, text, legacy_history_event(log->config.history, &line, text));
	}
}

void legacy_log_wire(struct log_writer *log_writer, uint32_t pid,
		     const struct legacy_message *message)
{
	/* A trace with gaps is still useful: the log writer reports what is dropped. */
	(void)log_writer_print(
		log_writer,
		"wire: pid %" PRIu32 " %s %s device=%" PRId32 " type=%u size=%" PRIu64
		" id=0x%" PRIx64 " sender=%" PRId32 " time=%" PRIu64 "\n",
		pid, legacy_dialect_name(message->dialect), legacy_type_name(message->type),
		message->device, message->buffer_type, message->size, message->id, message->pid,
		message->timestamp);
}
