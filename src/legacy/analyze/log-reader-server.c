/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of the old server and of the detailed log. Anything may precede them, such as the time and
 * host of a journal. They are recognized by their words, not by the check marks, which some
 * terminals lose.
 */

#include <string.h>

#include "answers/seed-lines.h"
#include "base/bits.h"
#include "legacy/analyze/log-reader-private.h"

/* "Allocated N bytes of TYPE on device D (buffer_id=ID)", or ", ref_count=R)". */
static bool server_alloc(const char *at, struct log_reader_event *event)
{
	event->kind = LOG_READER_ALLOC;
	event->has_size = true;
	return log_reader_eat_number(&at, &event->size) && log_reader_eat(&at, " bytes of ") &&
	       log_reader_eat_type(&at, &event->type) && log_reader_eat(&at, " on device ") &&
	       log_reader_eat_device(&at, &event->device) && log_reader_eat(&at, " (buffer_id=") &&
	       log_reader_eat_id(&at, &event->address) &&
	       (!log_reader_eat(&at, ", ref_count=") || log_reader_eat_small(&at, &event->refs)) &&
	       log_reader_eat(&at, ")") && event->size > 0;
}

/* "Freed buffer ID on device D (N bytes, FINAL)", or "ref_count=R remaining)". */
static bool server_free(const char *at, struct log_reader_event *event)
{
	event->kind = LOG_READER_FREE;
	event->has_size = true;
	if (!log_reader_eat_id(&at, &event->address) || !log_reader_eat(&at, " on device ") ||
	    !log_reader_eat_device(&at, &event->device) || !log_reader_eat(&at, " (") ||
	    !log_reader_eat_number(&at, &event->size) || !log_reader_eat(&at, " bytes, "))
		return false;
	if (log_reader_eat(&at, "FINAL)")) {
		event->is_resize = log_reader_eat(&at, SEED_LINES_RESIZED);
		return true;
	}
	return log_reader_eat(&at, "ref_count=") && log_reader_eat_small(&at, &event->refs) &&
	       log_reader_eat(&at, " remaining)");
}

/* "ID on device D (...". */
static bool server_lost(const char *at, enum log_reader_kind kind, struct log_reader_event *event)
{
	event->kind = kind;
	return log_reader_eat_id(&at, &event->address) && log_reader_eat(&at, " on device ") &&
	       log_reader_eat_device(&at, &event->device) && (*at == '\0' || *at == ' ');
}

/* "old=A new=B (buffer_id=ID, device=D)". */
static bool server_resized(const char *at, struct log_reader_event *event)
{
	uint64_t old;

	event->kind = LOG_READER_RESIZED;
	event->has_size = true;
	return log_reader_eat(&at, "old=") && log_reader_eat_number(&at, &old) &&
	       log_reader_eat(&at, " new=") && log_reader_eat_number(&at, &event->size) &&
	       log_reader_eat(&at, " (buffer_id=") && log_reader_eat_id(&at, &event->address) &&
	       log_reader_eat(&at, ", device=") && log_reader_eat_device(&at, &event->device) &&
	       log_reader_eat(&at, ")");
}

/*
 * Lines as the tracing guide quotes them, without a pid: "✓ Allocated N bytes (buffer_id=ID, device D)",
 * "✗ Freed N bytes (FINAL)", "⚠ Deallocation for unknown buffer ID". The marks must be there, because the words
 * alone may be anybody's.
 */
static int server_brief(const char *line, struct log_reader_event *event)
{
	const char *at;

	event->format = LOG_READER_SERVER;
	event->has_size = true;
	at = strstr(line, "✓ Allocated ");
	if (at && log_reader_eat(&at, "✓ Allocated ") && log_reader_eat_number(&at, &event->size) &&
	    log_reader_eat(&at, " bytes (buffer_id=") && log_reader_eat_id(&at, &event->address) &&
	    log_reader_eat(&at, ", device ") && log_reader_eat_device(&at, &event->device) &&
	    log_reader_eat(&at, ")") && event->size > 0) {
		event->kind = LOG_READER_ALLOC;
		return LOG_READER_TAKEN;
	}
	at = strstr(line, "✗ Freed ");
	if (at && log_reader_eat(&at, "✗ Freed ") && log_reader_eat_number(&at, &event->size) &&
	    log_reader_eat(&at, " bytes (FINAL)")) {
		event->kind = LOG_READER_FREE;
		event->lacks_address = true;
		return LOG_READER_TAKEN;
	}
	event->has_size = false;
	at = strstr(line, "⚠ Deallocation for unknown buffer ");
	if (at && log_reader_eat(&at, "⚠ Deallocation for unknown buffer ") &&
	    log_reader_eat_id(&at, &event->address) && (*at == '\0' || *at == ' ')) {
		event->kind = LOG_READER_UNKNOWN_FREE;
		event->lacks_device = true;
		return LOG_READER_TAKEN;
	}
	return LOG_READER_OTHER;
}

/* What stands behind "[PID P] ", or in a line without it. */
static int server_words(const char *at, struct log_reader_event *event)
{
	bool good;

	event->format = LOG_READER_SERVER;
	if (log_reader_eat(&at, "Allocated "))
		good = server_alloc(at, event);
	else if (log_reader_eat(&at, "Freed buffer "))
		good = server_free(at, event);
	else if (log_reader_eat(&at, "Deallocation for unknown buffer "))
		good = server_lost(at, LOG_READER_UNKNOWN_FREE, event);
	else if (log_reader_eat(&at, "Deallocation for ALREADY FREED buffer "))
		good = server_lost(at, LOG_READER_ALREADY_FREED, event);
	else if (log_reader_eat(&at, "Buffer reused with DIFFERENT size: "))
		good = server_resized(at, event);
	else if (log_reader_eat(&at, "Invalid buffer_type ")) {
		event->kind = LOG_READER_REJECTED;
		good = true;
	} else
		return LOG_READER_OTHER;
	return good ? LOG_READER_TAKEN : LOG_READER_DAMAGED;
}

/* Lines about the server itself and about processes. */
static int server_rest(const char *line, struct log_reader_event *event)
{
	const char *at;

	event->format = LOG_READER_SERVER;
	at = strstr(line, "PID ");
	if (at && log_reader_eat(&at, "PID ") && log_reader_eat_small(&at, &event->pid) &&
	    log_reader_eat(&at, " is dead, ")) {
		event->kind = LOG_READER_DEAD;
		event->has_pid = true;
		return LOG_READER_TAKEN;
	}
	at = strstr(line, "Removed ");
	if (at)
		return log_reader_removed(at + strlen("Removed "), event);
	if (strstr(line, "Allocation Server started")) {
		event->kind = LOG_READER_STARTED;
		return LOG_READER_TAKEN;
	}
	at = strstr(line, "Invalid ");
	if (at &&
	    (strncmp(at, "Invalid device_id ", 18) == 0 || strncmp(at, "Invalid size ", 13) == 0 ||
	     strncmp(at, "Invalid buffer_type ", 20) == 0)) {
		event->kind = LOG_READER_REJECTED;
		return LOG_READER_TAKEN;
	}
	return LOG_READER_OTHER;
}

/* Where the last mark of an event is in a line, with the bracket that follows it; NULL = nowhere. */
static const char *server_mark(const char *line)
{
	static const char *const marks[] = {"✓ [", "✗ [", "⚠ ["};
	const char *last = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		for (const char *at = strstr(line, marks[i]); at; at = strstr(at + 1, marks[i])) {
			if (!last || at > last)
				last = at;
		}
	}
	return last ? strchr(last, '[') : NULL;
}

/* A line that ends in the middle of the words that begin an event. */
static bool server_is_begun(const char *at)
{
	static const char *const words[] = {
		"Allocated ",
		"Freed buffer ",
		"Deallocation for unknown buffer ",
		"Deallocation for ALREADY FREED buffer ",
		"Buffer reused with DIFFERENT size: ",
		"Invalid buffer_type ",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (log_reader_is_begun(at, words[i], 4))
			return true;
	}
	return false;
}

/* What stands in the brackets of an event, as far as the line has it. */
static bool server_is_cut(const char *bracket)
{
	static const char *const words[] = {
		"[PID ", "[CB_ALLOC] ", "[CB_FREE] ", "[KERNEL_LOAD] ", "[KERNEL_UNLOAD] ",
	};

	for (size_t i = 0; bracket && i < ARRAY_SIZE(words); i++) {
		if (log_reader_is_begun(bracket, words[i], 2))
			return true;
	}
	return false;
}

/* Behind "[PID ". */
static int server_pid(const char *line, const char *at, struct log_reader_event *event)
{
	int outcome = LOG_READER_OTHER;
	const char *words;

	event->has_pid = true;
	if (log_reader_eat_small(&at, &event->pid) && log_reader_eat(&at, "] ")) {
		outcome = server_words(at, event);
		/* One line was printed into another: neither can be trusted. */
		if (outcome == LOG_READER_TAKEN && strstr(at, "[PID "))
			return LOG_READER_DAMAGED;
		if (outcome == LOG_READER_OTHER && server_is_begun(at))
			return LOG_READER_DAMAGED;
	} else {
		/* With words that only an event has: its pid is what is wrong. */
		words = strstr(at, "] ");
		if (words && server_words(words + 2, event) != LOG_READER_OTHER)
			return LOG_READER_DAMAGED;
	}
	return outcome == LOG_READER_OTHER && server_mark(line) ? LOG_READER_DAMAGED : outcome;
}

int log_reader_server_line(const char *line, struct log_reader_event *ret_event)
{
	const struct log_reader_event empty = *ret_event;
	const char *at = strstr(line, "[PID ");
	int outcome;

	if (at)
		return server_pid(line, at + strlen("[PID "), ret_event);
	outcome = log_reader_counters(line, ret_event);
	if (outcome != LOG_READER_OTHER)
		return outcome;
	at = strstr(line, "Deallocation for ALREADY FREED");
	outcome = at ? server_words(at, ret_event) : LOG_READER_OTHER;
	if (outcome == LOG_READER_OTHER) {
		*ret_event = empty;
		outcome = server_brief(line, ret_event);
	}
	if (outcome == LOG_READER_OTHER) {
		*ret_event = empty;
		outcome = server_rest(line, ret_event);
	}
	if (outcome == LOG_READER_OTHER && server_is_cut(server_mark(line)))
		outcome = LOG_READER_DAMAGED;
	return outcome;
}

bool log_reader_is_known_line(const char *line)
{
	static const char *const words[] = {
		"=== TT-Metal Buffer Allocation Stack Traces ===",
		"Background cleanup thread started (checking every ",
		"Current Statistics:",
		"  Active allocations: ",
		"REMAINING ALLOCATED BUFFERS",
		"No buffers remaining - perfect cleanup!",
		"  History (allocs=",
		"DOUBLE-FREED BUFFERS",
		"Allocation Server stopped",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(line, words[i]))
			return true;
	}
	return false;
}

int log_reader_detailed_line(const char *line, struct log_reader_event *ret_event)
{
	const char *at = strstr(line, "ALLOC: pid=");
	uint32_t type;
	uint64_t time;

	if (!at)
		return strncmp(line, "ALLOC:", 6) == 0 ? LOG_READER_DAMAGED : LOG_READER_OTHER;
	ret_event->format = LOG_READER_DETAILED;
	ret_event->kind = LOG_READER_ALLOC;
	ret_event->has_pid = ret_event->has_size = true;
	if (!log_reader_eat(&at, "ALLOC: pid=") || !log_reader_eat_small(&at, &ret_event->pid) ||
	    !log_reader_eat(&at, " device=") || !log_reader_eat_device(&at, &ret_event->device) ||
	    !log_reader_eat(&at, " size=") || !log_reader_eat_number(&at, &ret_event->size) ||
	    !log_reader_eat(&at, " type=") || !log_reader_eat_small(&at, &type) ||
	    !log_reader_eat(&at, " addr=") || !log_reader_eat_id(&at, &ret_event->address) ||
	    !log_reader_eat(&at, " timestamp=") || !log_reader_eat_number(&at, &time) || *at)
		return LOG_READER_DAMAGED;
	ret_event->type = type < BOOK_TYPES ? type : LOG_READER_NO_TYPE;
	return LOG_READER_TAKEN;
}
