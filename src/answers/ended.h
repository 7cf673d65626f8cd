/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* ttmem.ended/1: who a process was and how it ended, and ttmem.leaks/1: what it left as well. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "answers/sites.h"

struct buffers_row;
struct document;
struct ending;
struct snapshot;
struct snapshot_process;

/* What the kernel says; of code and signal one is known. */
struct ended_exit {
	uint32_t code, signal;
	bool has_code;
	const char *name; /* "SIGKILL"; NULL = none */
};

struct ended_row {
	uint32_t pid, ns_pid, user_id;
	const char *comm, *user, *container, *source;
	uint64_t start_ns, ended_ns, bytes, buffers;
	const char *how; /* "closed" or "died" */
	bool execed;
	const struct ended_exit *exit; /* NULL = not known */
};

struct leaks_row {
	struct ended_row ended;
	bool has_recording;    /* it is told whether there is one: a file with its last minute */
	const char *recording; /* NULL = none */
	uint64_t listed;       /* buffers that the report has kept */
	uint64_t offset;       /* buffers that were on earlier pages */
	bool is_totals_only;   /* only tt-metal's region told of it: its buffers are not known */
	const struct site_row *sites;
	size_t site_count;

	/* Its buffers; or they are those of a process before an end in a snapshot, if no code writes them. */
	const struct buffers_row *buffers;
	size_t buffer_count;
	const struct snapshot *snapshot;
	size_t buffers_end;
	uint32_t process;
};

struct ended_room {
	struct ended_exit exit;
	char signal[16];
};

extern const struct field ended_exit_fields[];
extern const struct field ended_fields[];
extern const struct field leaks_fields[];
extern const struct field leaks_buffers[]; /* "buffers" alone */
extern const struct document ended_document, leaks_document;

struct ended_row ended_row_of(const struct snapshot_process *process, const struct ending *ending,
			      struct ended_room *room);

/*
 * In words: "killed by signal 9 (SIGKILL)", "exit code 1", "became another program", "ended in order", "died";
 * or short, "SIGKILL", "exit 1", "exec", "in order", "died". Returns @ret_text.
 */
#define ENDED_WORDS 96u
const char *ended_words(const struct ended_row *row, bool is_short, char ret_text[ENDED_WORDS]);

/* NULL if it is not known. */
const struct ended_exit *ended_exit_of(const struct ending *ending, struct ended_room *room);

/* Its buffers are those of a process in a snapshot: adds them up, and lists the first @most. */
void leaks_row_count(struct leaks_row *row, const struct snapshot *snapshot, uint32_t process,
		     uint64_t most);
