/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command lines of living processes, for whoever may see their details: on a machine where all
 * of them are called "python3", it says which is which.
 */

#include "answers/document.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/emit.h"
#include "daemon/daemon.h"
#include "daemon/registry/access.h"
#include "daemon/registry/tracked.h"
#include "model/query.h"
#include "source/proc/command-line.h"
#include "source/proc/proc.h"

/* Leaves it out if it has just ended, or cannot be looked at. */
static void commands_process(struct emit *json, const struct proc *proc,
			     const struct tracked *tracked)
{
	struct command_line line;
	char user[64];

	if (command_line_read(proc, tracked->process, &line) < 0)
		return;
	proc_user_name(tracked->user, user, sizeof(user));
	emit_open_object(json, NULL);
	emit_u64(json, "pid", tracked->process.pid);
	emit_u64(json, "start_ns", proc_started_ns(tracked->process.start_ticks));
	emit_string(json, "comm", tracked->comm);
	emit_string(json, "user", user);
	emit_u64(json, "user_id", tracked->user);
	emit_string(json, "container", *tracked->book->container ? tracked->book->container : NULL);
	command_line_emit(&line, json);
	emit_bool(json, "cut", line.is_cut);
	emit_close_object(json);
}

/* Whether an earlier book in the list is of the same process: it may have several. */
static bool commands_is_known(const struct book_list *list, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (process_id_equal(list->list[i]->process, list->list[index]->process))
			return true;
	}
	return false;
}

int daemon_commands(void *context, const struct query *query, const struct query_asker *asker,
		    struct emit *json)
{
	struct daemon *daemon = context;
	struct book_list *list;
	struct proc proc;
	int r = proc_open(&proc);

	if (r < 0)
		return r;
	list = registry_books(daemon->registry);
	document_open(json, "ttmem.commands/1", clock_ns(CLOCK_REALTIME));
	emit_open_array(json, "processes");
	for (size_t i = 0; i < list->count; i++) {
		const struct tracked *tracked = list->list[i];

		if (!filter_wants_pid(&query->filter, tracked->process.pid))
			continue;
		if (asker && !access_may_see(asker->peer, tracked->maker, tracked->namespaces))
			continue;
		if (!commands_is_known(list, i))
			commands_process(json, &proc, tracked);
	}
	emit_close_array(json);
	document_list_end(json, true);
	document_close_bare(json);
	book_list_unref(list);
	proc_close(&proc);
	return 0;
}
