/* SPDX-License-Identifier: Apache-2.0 */

/* Splits bytes into lines and passes each to the parser that understands it. */

#include "legacy/analyze/log-reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "legacy/analyze/log-reader-private.h"
#include "model/types.h"

int log_reader_new(struct log_reader **ret_log, log_reader_take take, void *context)
{
	struct log_reader *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	log->take = take;
	log->context = context;
	*ret_log = log;
	return 0;
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

bool log_reader_eat(const char **at, const char *text)
{
	size_t length = strlen(text);

	if (strncmp(*at, text, length) != 0)
		return false;
	*at += length;
	return true;
}

bool log_reader_is_begun(const char *at, const char *text, size_t least)
{
	size_t length = strlen(at);

	return length >= least && length < strlen(text) && strncmp(at, text, length) == 0;
}

bool log_reader_eat_number(const char **at, uint64_t *ret_value)
{
	const char *p = *at;
	uint64_t value = 0;

	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return false;
	}
	*at = p;
	*ret_value = value;
	return true;
}

bool log_reader_eat_small(const char **at, uint32_t *ret_value)
{
	const char *p = *at;
	uint64_t value;

	if (!log_reader_eat_number(&p, &value) || value > INT32_MAX)
		return false;
	*at = p;
	*ret_value = (uint32_t)value;
	return true;
}

static int log_reader_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool log_reader_eat_id(const char **at, uint64_t *ret_value)
{
	const char *p = *at;
	uint64_t value = 0;

	if (!log_reader_eat(&p, "0x"))
		return log_reader_eat_number(at, ret_value);
	if (log_reader_digit(*p) < 0)
		return false;
	for (; log_reader_digit(*p) >= 0; p++) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)log_reader_digit(*p);
	}
	*at = p;
	*ret_value = value;
	return true;
}

bool log_reader_eat_device(const char **at, uint32_t *ret_device)
{
	const char *p = *at;
	uint32_t device;

	if (!log_reader_eat_small(&p, &device) || device >= BOOK_DEVICES)
		return false;
	*at = p;
	*ret_device = device;
	return true;
}

bool log_reader_eat_type(const char **at, uint32_t *ret_type)
{
	size_t length = strcspn(*at, " \t");
	char name[32];

	if (length == 0 || length >= sizeof(name))
		return false;
	memcpy(name, *at, length);
	name[length] = '\0';
	*at += length;
	if (types_parse(name, ret_type) < 0)
		*ret_type = LOG_READER_NO_TYPE;
	return true;
}

int log_reader_put(struct log_reader *log, const struct log_reader_event *event)
{
	log->counts.events++;
	log->counts.is_known = true;
	log->counts.formats |= 1u << event->format;
	if (!log_reader_format_has_frees(event->format)) {
		log->counts.lacks_frees = true;
		log->counts.blind++;
	}
	return log->take(log->context, event);
}

/* Whether a line only keeps records apart. */
static bool log_reader_is_between(const char *line)
{
	static const char *const marks[] = {"═", "─"};

	line += strspn(line, " \t");
	return !*line || strncmp(line, marks[0], strlen(marks[0])) == 0 ||
	       strncmp(line, marks[1], strlen(marks[1])) == 0;
}

/* A whole line, ended by NUL. */
static int log_reader_line(struct log_reader *log)
{
	struct log_reader_event event = {.type = LOG_READER_NO_TYPE, .line = log->counts.lines};
	int outcome, r;

	/* The middle of a truncated or overwritten file may contain anything. */
	if (memchr(log->line, '\0', log->length))
		log->is_cut = true;
	r = log_reader_record_line(log, log->line, &outcome);
	if (r < 0 || outcome == LOG_READER_TAKEN)
		return r;
	if (outcome == LOG_READER_OTHER)
		outcome = log_reader_server_line(log->line, &event);
	if (outcome == LOG_READER_OTHER)
		outcome = log_reader_detailed_line(log->line, &event);
	if (outcome == LOG_READER_TAKEN && !log->is_cut)
		return log_reader_put(log, &event);
	if (outcome != LOG_READER_OTHER)
		log->counts.damaged++;
	else if (log_reader_is_known_line(log->line))
		log->counts.is_known = true;
	else
		log->counts.other += !log_reader_is_between(log->line);
	return 0;
}

static int log_reader_end_line(struct log_reader *log)
{
	int r;

	if (log->length > 0 && log->line[log->length - 1] == '\r')
		log->length--;
	log->line[log->length] = '\0';
	log->counts.lines++;
	r = log_reader_line(log);
	log->length = 0;
	log->is_cut = false;
	return r;
}

int log_reader_feed(struct log_reader *log, const char *bytes, size_t length)
{
	const char *end = bytes + length;
	int r;

	log->counts.bytes += length;
	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t n = (size_t)((newline ? newline : end) - bytes);
		size_t fits = bits_min(n, LOG_READER_LINE_MAX - log->length);

		memcpy(log->line + log->length, bytes, fits);
		log->length += fits;
		log->is_cut |= fits < n;
		if (!newline)
			return 0;
		r = log_reader_end_line(log);
		if (r < 0)
			return r;
		bytes = newline + 1;
	}
	return 0;
}

int log_reader_finish(struct log_reader *log)
{
	int r = log->length > 0 ? log_reader_end_line(log) : 0;

	return r < 0 ? r : log_reader_put_record(log);
}
