/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who may see one. Whoever got the book of a process sees its details; the daemon hands it out to nobody
 * else. Of processes without a book, root and the user whose process it is.
 */

#include "cli/common/command-lines.h"

#include <unistd.h>

#include "base/bits.h"
#include "base/emit.h"
#include "cli/common/session.h"
#include "model/snapshot.h"
#include "source/proc/command-line.h"

static bool command_lines_may_see(const struct snapshot_process *process)
{
	uid_t user = geteuid();

	if (process->books > 0 || user == 0)
		return true;
	return process->maker_id == user && process->user_id == user;
}

static void command_lines_write(struct document_commands *commands, struct emit *json,
				const struct snapshot_process *process)
{
	struct command_lines *lines = container_of(commands, struct command_lines, document);
	struct command_line line;

	if (!process->alive || !command_lines_may_see(process) ||
	    command_line_read(&lines->proc, process->id, &line) < 0)
		return;
	command_line_emit(&line, json);
	emit_bool(json, "command_cut", line.is_cut);
}

struct document_commands *command_lines_init(struct command_lines *lines, struct session *session)
{
	*lines = (struct command_lines){.document.write = command_lines_write};
	lines->is_open = !session_recording(session) && proc_open(&lines->proc) == 0;
	return lines->is_open ? &lines->document : NULL;
}

void command_lines_deinit(struct command_lines *lines)
{
	if (lines->is_open)
		proc_close(&lines->proc);
}
