/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Command lines in the JSON documents of the command, of the processes whose details the user may see.
 * They are read while the document is written: there may be thousands of them.
 */

#include <stdbool.h>

#include "answers/document.h"
#include "source/proc/proc.h"

struct session;

struct command_lines {
	struct document_commands document;
	struct proc proc;
	bool is_open;
};

/*
 * Of the processes of this machine; none if the session shows a recording. Returns what documents take,
 * which may be NULL.
 */
struct document_commands *command_lines_init(struct command_lines *lines, struct session *session);
void command_lines_deinit(struct command_lines *lines);
