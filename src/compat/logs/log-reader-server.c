/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of the old server and of the detailed log. They may have anything in front of them, such as the
 * time and host of a journal; the words decide, not the marks, which some terminals lose.
 */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compat/logs/log-reader-private.h"

#define SERVER_MB (1024.0 * 1024.0)
#define SERVER_MB_MAX 1e9 /* a petabyte: more is no size */

enum {
	SERVER_TYPE_CB = 5,
	SERVER_TYPE_KERNEL = 6,
};

/* "Allocated N bytes of TYPE on device D (buffer_id=ID)", or ", ref_count=R)". */
static bool server_alloc(const char *at, struct logread_event *event)
{
	event->kind = LOGREAD_ALLOC;
	event->has_size = true;
	return logread_eat_number(&at, &event->size) && logread_eat(&at, " bytes of ") &&
	       logread_eat_type(&at, &event->type) && logread_eat(&at, " on device ") &&
	       logread_eat_device(&at, &event->device) && logread_eat(&at, " (buffer_id=") &&
	       logread_eat_id(&at, &event->address) &&
	       (!logread_eat(&at, ", ref_count=") || logread_eat_small(&at, &event->refs)) &&
	       logread_eat(&at, ")") && event->size > 0;
}

/* "Freed buffer ID on device D (N bytes, FINAL)", or "ref_count=R remaining)". */
static bool server_free(const char *at, struct logread_event *event)
{
	event->kind = LOGREAD_FREE;
	event->has_size = true;
	return logread_eat_id(&at, &event->address) && logread_eat(&at, " on device ") &&
	       logread_eat_device(&at, &event->device) && logread_eat(&at, " (") &&
	       logread_eat_number(&at, &event->size) && logread_eat(&at, " bytes, ") &&
	       (logread_eat(&at, "FINAL)") ||
		(logread_eat(&at, "ref_count=") && logread_eat_small(&at, &event->refs) &&
		 logread_eat(&at, " remaining)")));
}

/* "ID on device D (...". */
static bool server_lost(const char *at, enum logread_kind kind, struct logread_event *event)
{
	event->kind = kind;
	return logread_eat_id(&at, &event->address) && logread_eat(&at, " on device ") &&
	       logread_eat_device(&at, &event->device) && (*at == '\0' || *at == ' ');
}

/* "old=A new=B (buffer_id=ID, device=D)". */
static bool server_resized(const char *at, struct logread_event *event)
{
	uint64_t old;

	event->kind = LOGREAD_RESIZED;
	event->has_size = true;
	return logread_eat(&at, "old=") && logread_eat_number(&at, &old) &&
	       logread_eat(&at, " new=") && logread_eat_number(&at, &event->size) &&
	       logread_eat(&at, " (buffer_id=") && logread_eat_id(&at, &event->address) &&
	       logread_eat(&at, ", device=") && logread_eat_device(&at, &event->device) &&
	       logread_eat(&at, ")");
}

/* What stands behind "[PID P] ", or in a line without it. */
static int server_words(const char *at, struct logread_event *event)
{
	bool good;

	event->format = LOGREAD_SERVER;
	if (logread_eat(&at, "Allocated "))
		good = server_alloc(at, event);
	else if (logread_eat(&at, "Freed buffer "))
		good = server_free(at, event);
	else if (logread_eat(&at, "Deallocation for unknown buffer "))
		good = server_lost(at, LOGREAD_UNKNOWN_FREE, event);
	else if (logread_eat(&at, "Deallocation for ALREADY FREED buffer "))
		good = server_lost(at, LOGREAD_ALREADY_FREED, event);
	else if (logread_eat(&at, "Buffer reused with DIFFERENT size: "))
		good = server_resized(at, event);
	else if (logread_eat(&at, "Invalid buffer_type ")) {
		event->kind = LOGREAD_REJECTED;
		good = true;
	} else
		return LOGREAD_OTHER;
	return good ? LOGREAD_TAKEN : LOGREAD_DAMAGED;
}

/* "X MB", as a C++ stream prints a number: six digits, perhaps with an exponent. */
static bool server_eat_mb(const char **at, uint64_t *ret_bytes)
{
	const char *p = *at;
	char *end;
	double mb;

	/* Not all that strtod() knows: no blanks, signs, names or hexadecimal. */
	if (*p < '0' || *p > '9' || p[1] == 'x' || p[1] == 'X')
		return false;
	mb = strtod(p, &end);
	p = end;
	if (!(mb >= 0 && mb < SERVER_MB_MAX) || !logread_eat(&p, " MB"))
		return false;
	*at = p;
	*ret_bytes = (uint64_t)(mb * SERVER_MB + 0.5);
	return true;
}

/* "Device D: +X MB (Total: Y MB)". */
static bool server_counted(const char *at, struct logread_event *event)
{
	bool is_alloc = event->kind == LOGREAD_COUNTED_ALLOC;

	event->has_size = true;
	return logread_eat(&at, "evice ") && logread_eat_device(&at, &event->device) &&
	       logread_eat(&at, is_alloc ? ": +" : ": -") && server_eat_mb(&at, &event->size);
}

/* "[CB_ALLOC] Device ...", "[KERNEL_LOAD] SORT kernel on Device ...". */
static int server_counters(const char *line, struct logread_event *event)
{
	static const struct {
		const char *word;
		enum logread_kind kind;
		uint32_t type;
	} words[] = {
		{"[CB_ALLOC] ", LOGREAD_COUNTED_ALLOC, SERVER_TYPE_CB},
		{"[CB_FREE] ", LOGREAD_COUNTED_FREE, SERVER_TYPE_CB},
		{"[KERNEL_LOAD] ", LOGREAD_COUNTED_ALLOC, SERVER_TYPE_KERNEL},
		{"[KERNEL_UNLOAD] ", LOGREAD_COUNTED_FREE, SERVER_TYPE_KERNEL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *at = strstr(line, words[i].word);

		if (!at)
			continue;
		event->format = LOGREAD_SERVER;
		event->kind = words[i].kind;
		event->type = words[i].type;
		at = strpbrk(at + strlen(words[i].word), "dD");
		while (at && strncmp(at + 1, "evice ", 6) != 0)
			at = strpbrk(at + 1, "dD");
		return at && server_counted(at + 1, event) ? LOGREAD_TAKEN : LOGREAD_DAMAGED;
	}
	return LOGREAD_OTHER;
}

/* "Removed n buffers (X MB) from PID P". */
static int server_removed(const char *at, struct logread_event *event)
{
	event->kind = LOGREAD_REMOVED;
	event->has_size = event->has_pid = true;
	if (!logread_eat_number(&at, &event->count))
		return LOGREAD_OTHER; /* other programs remove things, too */
	if (logread_eat(&at, " CBs ("))
		event->type = SERVER_TYPE_CB;
	else if (logread_eat(&at, " kernels ("))
		event->type = SERVER_TYPE_KERNEL;
	else if (!logread_eat(&at, " buffers ("))
		return LOGREAD_OTHER;
	return server_eat_mb(&at, &event->size) && logread_eat(&at, ") from PID ") &&
			       logread_eat_small(&at, &event->pid)
		       ? LOGREAD_TAKEN
		       : LOGREAD_DAMAGED;
}

/* Lines that tell of the server itself and of processes. */
static int server_rest(const char *line, struct logread_event *event)
{
	const char *at;

	event->format = LOGREAD_SERVER;
	at = strstr(line, "PID ");
	if (at && logread_eat(&at, "PID ") && logread_eat_small(&at, &event->pid) &&
	    logread_eat(&at, " is dead, ")) {
		event->kind = LOGREAD_DEAD;
		event->has_pid = true;
		return LOGREAD_TAKEN;
	}
	at = strstr(line, "Removed ");
	if (at)
		return server_removed(at + strlen("Removed "), event);
	if (strstr(line, "Allocation Server started")) {
		event->kind = LOGREAD_STARTED;
		return LOGREAD_TAKEN;
	}
	at = strstr(line, "Invalid ");
	if (at &&
	    (strncmp(at, "Invalid device_id ", 18) == 0 || strncmp(at, "Invalid size ", 13) == 0 ||
	     strncmp(at, "Invalid buffer_type ", 20) == 0)) {
		event->kind = LOGREAD_REJECTED;
		return LOGREAD_TAKEN;
	}
	return LOGREAD_OTHER;
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
		if (logread_is_begun(at, words[i], 4))
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
		if (logread_is_begun(bracket, words[i], 2))
			return true;
	}
	return false;
}

/* Behind "[PID ". */
static int server_pid(const char *line, const char *at, struct logread_event *event)
{
	int outcome = LOGREAD_OTHER;
	const char *words;

	event->has_pid = true;
	if (logread_eat_small(&at, &event->pid) && logread_eat(&at, "] ")) {
		outcome = server_words(at, event);
		/* One line printed into another: none of the two can be trusted. */
		if (outcome == LOGREAD_TAKEN && strstr(at, "[PID "))
			return LOGREAD_DAMAGED;
		if (outcome == LOGREAD_OTHER && server_is_begun(at))
			return LOGREAD_DAMAGED;
	} else {
		/* With words that only an event has: its pid is what is wrong. */
		words = strstr(at, "] ");
		if (words && server_words(words + 2, event) != LOGREAD_OTHER)
			return LOGREAD_DAMAGED;
	}
	return outcome == LOGREAD_OTHER && server_mark(line) ? LOGREAD_DAMAGED : outcome;
}

int logread_server_line(const char *line, struct logread_event *ret_event)
{
	const struct logread_event empty = *ret_event;
	const char *at = strstr(line, "[PID ");
	int outcome;

	if (at)
		return server_pid(line, at + strlen("[PID "), ret_event);
	outcome = server_counters(line, ret_event);
	if (outcome != LOGREAD_OTHER)
		return outcome;
	at = strstr(line, "Deallocation for ALREADY FREED");
	outcome = at ? server_words(at, ret_event) : LOGREAD_OTHER;
	if (outcome == LOGREAD_OTHER) {
		*ret_event = empty;
		outcome = server_rest(line, ret_event);
	}
	if (outcome == LOGREAD_OTHER && server_is_cut(server_mark(line)))
		outcome = LOGREAD_DAMAGED;
	return outcome;
}

bool logread_is_known_line(const char *line)
{
	static const char *const words[] = {
		"=== TT-Metal Buffer Allocation Stack Traces ===",
		"Background cleanup thread started (checking every ",
		"Current Statistics:",
		"  Active allocations: ",
		"REMAINING ALLOCATED BUFFERS",
		"No buffers remaining - perfect cleanup!",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strstr(line, words[i]))
			return true;
	}
	return false;
}

int logread_detailed_line(const char *line, struct logread_event *ret_event)
{
	const char *at = strstr(line, "ALLOC: pid=");
	uint32_t type;
	uint64_t time;

	if (!at)
		return strncmp(line, "ALLOC:", 6) == 0 ? LOGREAD_DAMAGED : LOGREAD_OTHER;
	ret_event->format = LOGREAD_DETAILED;
	ret_event->kind = LOGREAD_ALLOC;
	ret_event->has_pid = ret_event->has_size = true;
	if (!logread_eat(&at, "ALLOC: pid=") || !logread_eat_small(&at, &ret_event->pid) ||
	    !logread_eat(&at, " device=") || !logread_eat_device(&at, &ret_event->device) ||
	    !logread_eat(&at, " size=") || !logread_eat_number(&at, &ret_event->size) ||
	    !logread_eat(&at, " type=") || !logread_eat_small(&at, &type) ||
	    !logread_eat(&at, " addr=") || !logread_eat_id(&at, &ret_event->address) ||
	    !logread_eat(&at, " timestamp=") || !logread_eat_number(&at, &time) || *at)
		return LOGREAD_DAMAGED;
	ret_event->type = type < BOOK_TYPES ? type : LOGREAD_NO_TYPE;
	return LOGREAD_TAKEN;
}
