/* SPDX-License-Identifier: Apache-2.0 */

/* Splits bytes into lines and passes each to the parser that understands it. */

#include "legacy/analyze/log-reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cli/common/must.h"
#include "legacy/analyze/log-reader-private.h"

struct log_reader *log_reader_new(log_reader_take take, void *context)
{
	struct log_reader *log = must_alloc(1, sizeof(*log));

	log->take = take;
	log->context = context;
	return log;
}

struct log_reader *log_reader_free(struct log_reader *log)
{
	free(log);
	return NULL;
}

const struct log_reader_counts *log_reader_counts(const struct log_reader *log)
{
	return &log->counts;
}

const char *log_reader_format_name(uint32_t format)
{
	static const char *const names[LOG_READER_FORMATS] = {
		"server",
		"buffer_debug",
		"detailed",
		"stack_trace",
	};

	return format < LOG_READER_FORMATS ? names[format] : NULL;
}

bool log_reader_format_has_frees(enum log_reader_format format)
{
	return format != LOG_READER_DETAILED;
}

void log_reader_put(struct log_reader *log, const struct log_reader_event *event)
{
	log->counts.events++;
	log->counts.is_known = true;
	log->counts.formats |= 1u << event->format;
	if (!log_reader_format_has_frees(event->format)) {
		log->counts.lacks_frees = true;
		log->counts.blind++;
	}
	log->take(log->context, event);
}

/* Whether a line only keeps records apart. */
static bool log_reader_is_between(const char *line)
{
	static const char *const marks[] = {"═", "─"};

	line += strspn(line, " \t");
	return !*line || strncmp(line, marks[0], strlen(marks[0])) == 0 ||
	       strncmp(line, marks[1], strlen(marks[1])) == 0;
}

/* An event of one line. */
static void log_reader_event(struct log_reader *log, struct log_reader_event *event)
{
	if (event->kind == LOG_READER_KNOWN) {
		log->counts.is_known = true;
		return;
	}
	if (event->kind == LOG_READER_LEFT)
		log->left = *event;
	/* The line before those of the buffers has the pid; without it they are in no known log. */
	if (event->kind == LOG_READER_LEFT_BUFFER && !log->left.has_pid) {
		log->counts.other++;
		return;
	}
	if (event->kind == LOG_READER_LEFT_BUFFER) {
		event->has_pid = true;
		event->pid = log->left.pid;
	}
	log_reader_put(log, event);
}

/* A whole line, ended by NUL. */
static void log_reader_line(struct log_reader *log)
{
	struct log_reader_event event = {.type = LOG_READER_NO_TYPE, .line = log->counts.lines};
	enum log_scan outcome;
	bool is_known;

	/* The middle of a truncated or overwritten file may contain anything. */
	if (memchr(log->line, '\0', log->length))
		log->is_cut = true;
	outcome = log_reader_record_line(log, log->line);
	if (outcome == LOG_SCAN_TAKEN)
		return;
	if (outcome == LOG_SCAN_OTHER)
		outcome = log_reader_event_line(log->line, &event);
	is_known = outcome == LOG_SCAN_TAKEN && event.kind == LOG_READER_KNOWN;
	if (outcome == LOG_SCAN_TAKEN && (!log->is_cut || is_known))
		log_reader_event(log, &event);
	else if (outcome != LOG_SCAN_OTHER)
		log->counts.damaged++;
	else
		log->counts.other += !log_reader_is_between(log->line);
}

static void log_reader_end_line(struct log_reader *log)
{
	if (log->length > 0 && log->line[log->length - 1] == '\r')
		log->length--;
	log->line[log->length] = '\0';
	log->counts.lines++;
	log_reader_line(log);
	log->length = 0;
	log->is_cut = false;
}

void log_reader_feed(struct log_reader *log, const char *bytes, size_t length)
{
	const char *end = bytes + length;

	log->counts.bytes += length;
	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t n = (size_t)((newline ? newline : end) - bytes);
		size_t fits = bits_min(n, LOG_READER_LINE_MAX - log->length);

		memcpy(log->line + log->length, bytes, fits);
		log->length += fits;
		log->is_cut |= fits < n;
		if (!newline)
			return;
		log_reader_end_line(log);
		bytes = newline + 1;
	}
}

void log_reader_finish(struct log_reader *log)
{
	if (log->length > 0)
		log_reader_end_line(log);
	log_reader_put_record(log);
}
