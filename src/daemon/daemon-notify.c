/* SPDX-License-Identifier: Apache-2.0 */

/* News for everybody who wants it: the log, the journal, a command, those who watch over HTTP. */

#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/notify/incident-hook.h"
#include "daemon/notify/journal.h"
#include "daemon/notify/log-writer.h"
#include "daemon/notify/notice.h"
#include "model/types.h"
#include "web/export/push.h"

/* Its first line is the message; the rest is in the fields, or too long. */
static void tell_journal(struct daemon *daemon, const struct news *news)
{
	char message[JOURNAL_TEXT_MAX];
	const struct journal_entry entry = {
		.kind = news->kind,
		.message = message,
		.pid = news->pid,
		.comm = news->comm,
		.device = news->device,
		.type = types_name(news->type),
		.bytes = news->bytes,
		.buffers = news->buffers,
	};

	if (!daemon->journal)
		return;
	(void)snprintf(message, sizeof(message), "%.*s", (int)strcspn(news->text, "\n"),
		       news->text);
	(void)journal_send(daemon->journal, &entry); /* what is dropped is counted */
}

void daemon_tell(struct daemon *daemon, const struct news *news)
{
	const struct config *config = daemon->config;
	const struct web_incident incident = {
		.kind = news->kind,
		.pid = news->pid,
		.device = news->device,
		.json = news->json,
		.length = news->json_length,
	};

	if (daemon->legacy && !news->is_old_client && !news->is_totals_only &&
	    strcmp(news->kind, "leak") == 0)
		legacy_server_dead(daemon->legacy, &news->dead);
	if (!config->quiet)
		outlet_put(daemon->outlet, news->text, news->text_length);
	tell_journal(daemon, news);
	/* What is left out because there is too much of it is counted. */
	if (daemon->alarm)
		(void)alarm_raise(daemon->alarm, news->kind, news->json, news->json_length);
	if (daemon->web)
		web_tell_incident(daemon->web, &incident);
	if (daemon->push)
		push_tell_incident(daemon->push, &incident);
}
