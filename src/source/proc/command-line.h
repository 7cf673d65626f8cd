/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command line of a process, for people who tell processes of the same name apart by it. People
 * put secrets there although everybody on the machine can read them; so whatever looks like one is
 * masked here, before anything else sees it. The process can change the text at any time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"

struct emit;
struct proc;

#define COMMAND_LINE_READ_MAX 4096u
#define COMMAND_LINE_SIZE 8192u /* words that are masked may become longer */

struct command_line {
	char words[COMMAND_LINE_SIZE]; /* each ends with NUL; any bytes */
	size_t length;
	bool is_cut; /* there is more */
};

/*
 * The words of process @id. 0; -ESRCH if that process is not there
 * any more, or another negative errno. A kernel thread has no words.
 */
int command_line_read(const struct proc *proc, struct process_id id, struct command_line *ret_line);

/* The words in @bytes, with secrets masked; for tests. At most COMMAND_LINE_READ_MAX are used. */
void command_line_mask(const char *bytes, size_t length, struct command_line *ret_line);

/* Writes the words as the array "command". */
void command_line_emit(const struct command_line *line, struct emit *json);

/* The word after @word, or the first one; NULL at the end. */
const char *command_line_next(const struct command_line *line, const char *word);
