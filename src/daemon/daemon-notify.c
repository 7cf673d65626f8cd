/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Passes a notice to every consumer: the log, the journal, a command, watchers over HTTP. And counts
 * what did not get through.
 */

#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/notify/incident-hook.h"
#include "daemon/notify/journal.h"
#include "daemon/notify/log-writer.h"
#include "daemon/notify/notice.h"
#include "model/types.h"
#include "web/export/push.h"

/* The first line is the message; the rest is in the fields, or too long. */
static void tell_journal(struct daemon *daemon, const struct notice *notice)
{
	char message[JOURNAL_TEXT_MAX];
	const struct journal_entry entry = {
		.kind = notice->kind,
		.message = message,
		.pid = notice->pid,
		.comm = notice->comm,
		.device = notice->device,
		.type = types_name(notice->type),
		.bytes = notice->bytes,
		.buffers = notice->buffers,
		.stack = notice->stack,
		.site = notice->site,
	};

	if (!daemon->journal)
		return;
	(void)snprintf(message, sizeof(message), "%.*s", (int)strcspn(notice->text, "\n"),
		       notice->text);
	(void)journal_send(daemon->journal, &entry); /* drops are counted */
}

void daemon_tell(struct daemon *daemon, const struct notice *notice)
{
	const struct config *config = daemon->config;
	const struct web_incident incident = {
		.kind = notice->kind,
		.pid = notice->pid,
		.user = notice->user,
		.user_name = notice->user_name,
		.maker = notice->maker,
		.namespaces = notice->namespaces,
		.comm = notice->comm,
		.device = notice->device,
		.type = types_name(notice->type),
		.bytes = notice->bytes,
		.buffers = notice->buffers,
		.count = notice->count,
		.site = notice->site,
		.function = notice->function,
		.file = notice->file,
		.line = notice->line,
		.json = notice->json,
		.length = notice->json_length,
	};

	daemon_link_dead(daemon, notice);
	if (log_writer_charge(daemon->log_writer, notice->user, notice->text_length)) {
		if (!config->quiet && !daemon_link_lines(daemon, notice))
			log_writer_put(daemon->log_writer, notice->text, notice->text_length);
		tell_journal(daemon, notice);
	}
	/* Incidents dropped by the rate limit are counted. */
	if (daemon->incident_hook)
		(void)incident_hook_raise(daemon->incident_hook, notice->user, notice->kind,
					  notice->json, notice->json_length);
	if (daemon->web)
		web_tell_incident(daemon->web, &incident);
	if (daemon->push)
		push_tell_incident(daemon->push, &incident);
}
