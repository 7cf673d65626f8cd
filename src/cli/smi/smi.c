/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem smi: devices and processes at a glance, once or refreshed. */

#include "cli/smi/smi.h"

#include <errno.h>
#include <string.h>

#include "answers/answers.h"
#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "cli/common/asked-for.h"
#include "cli/common/command-lines.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/screen.h"
#include "cli/common/session.h"
#include "cli/smi/smi-hosts.h"
#include "model/by-user.h"
#include "model/query.h"
#include "model/snapshot.h"

struct smi {
	struct snapshot_request request;
	struct query query;
	struct smi_style style;
	bool again;
	bool by_user;
	bool json;
	bool csv;
	uint32_t refresh_ms;
	struct screen screen;
	struct smi_hosts hosts;
	struct asked_for asked;
	struct options_from from;
	struct command_lines lines;
	struct document_commands *commands; /* NULL = none are shown */
};

static int smi_write(const struct smi *smi, FILE *out, const struct snapshot *snapshot)
{
	CLEANUP(by_user_deinit) struct by_user users = BY_USER_NULL;
	struct smi_style style = smi->style;
	struct emit json = EMIT_INIT(out);

	if (smi->by_user) {
		style.users = &users;
		if (by_user_add(&users, snapshot, &smi->query.filter, smi->style.all) < 0)
			return -ENOMEM;
	}
	if (smi->json)
		document_smi_users(&json, snapshot, &smi->query.filter, smi->commands, style.users);
	else if (smi->csv && smi->by_user)
		smi_users_csv(out, snapshot, &users);
	else if (smi->csv)
		smi_csv(out, snapshot, &smi->query.filter);
	else
		smi_table(out, snapshot, &smi->query.filter, &style);
	return 0;
}

static int smi_redraw(struct smi *smi, const struct snapshot *snapshot)
{
	FILE *out = screen_begin(&smi->screen);
	int r;

	if (!out)
		return -ENOMEM;
	smi->style.cuts = true;
	smi->style.width = output_columns(); /* the terminal may have been resized */
	r = smi_write(smi, out, snapshot);
	return screen_show(&smi->screen, out) < 0 ? -ENOMEM : r;
}

static int smi_once(struct smi *smi, struct session *session)
{
	CLEANUP(snapshot_cleanup) struct snapshot *snapshot = NULL;
	int r = session_take(session, &smi->request, &snapshot);

	if (r < 0)
		return r;
	if (smi->again && output_is_terminal() && !smi->json && !smi->csv)
		return smi_redraw(smi, snapshot);
	if (!smi->again)
		asked_for_check(&smi->asked, session, snapshot);
	if (!smi->json && !smi->csv)
		session_print_moment(session);
	return smi_write(smi, stdout, snapshot);
}

static int smi_loop(struct smi *smi, struct session *session)
{
	int r = 0;

	output_catch_stop();
	if (output_is_terminal())
		(void)screen_keys_begin(); /* without keys, Ctrl-C ends it */
	while (r == 0 && !output_is_stopped() && !output_is_broken()) {
		r = smi_once(smi, session);
		if (r == 0 && fflush(stdout) == 0 && screen_wait(smi->refresh_ms))
			break;
	}
	screen_end(&smi->screen);
	screen_keys_end();
	return r;
}

static int smi_parse_by(void *target, const char *text)
{
	*(bool *)target = true;
	return strcmp(text, "user") == 0 ? 0 : -EINVAL;
}

static int smi_parse(struct smi *smi, int argc, char **argv)
{
	const struct options_item items[] = {
		{'w', "watch", NULL, "refresh until q or Ctrl-C is pressed", &smi->again, NULL},
		{'r', "refresh", "MS", "milliseconds between two refreshes (1000)",
		 &smi->refresh_ms, options_u32},
		{'d', "device", "DEV|UID", "only this device; may be given again"},
		{0, "user", "USER", "only processes of this user"},
		{0, "by", "user", "what each user holds instead of the processes", &smi->by_user,
		 smi_parse_by},
		{'a', "all", NULL, "closed devices and ended processes too", &smi->style.all, NULL},
		{0, "details", NULL, "every type of memory", &smi->style.details, NULL},
		OPTIONS_FROM(&smi->from),
		{0, "json", NULL, "as JSON (one line each with -w)", &smi->json, NULL},
		{0, "csv", NULL, "devices and types as CSV", &smi->csv, NULL},
		{0, "host", "HOST[:PORT]", "ask the ttmemd of this machine; may be given again",
		 &smi->hosts, smi_hosts_add},
		{0, "prometheus", "URL", "all machines that this Prometheus scrapes", &smi->hosts,
		 smi_hosts_set_prometheus},
	};
	const struct options options = {
		.command = "smi",
		.shows_sizes = true,
		.summary = "Devices and the processes that hold their memory.",
		.items = items,
		.count = ARRAY_SIZE(items),
		.query = &smi->query,
		.answer = &answers[ANSWERS_SMI],
	};
	int r = options_parse_only(&options, argc, argv);

	if (r == 0 && smi->json && smi->csv)
		r = options_mistake("smi", "--json or --csv, not both");
	if (r == 0 && (smi->hosts.count || smi->hosts.prometheus) &&
	    (smi->csv || smi->again || smi->by_user || smi->query.filter.user))
		r = options_mistake("smi",
				    "with --host and --prometheus there is no --csv, --watch, "
				    "--user or --by");
	if (r == 0 && smi->from.file && (smi->again || smi->hosts.count || smi->hosts.prometheus))
		r = options_mistake("smi",
				    "with --from there is no --watch, --host or --prometheus");
	if (r == 0 && smi->hosts.count && smi->hosts.prometheus)
		r = options_mistake("smi", "--host or --prometheus, not both");
	return r;
}

static int smi_run(int argc, char **argv)
{
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct smi smi = {.refresh_ms = 1000};
	int r = smi_parse(&smi, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	if (smi.hosts.count || smi.hosts.prometheus)
		return smi_hosts_run(&smi.hosts, smi.json);
	smi.asked = (struct asked_for){
		.command = "smi", .filter = &smi.query.filter, .is_json = smi.json};
	smi.style.colours = output_has_colours();
	smi.style.utf8 = output_is_utf8();
	smi.style.width = output_columns();
	smi.style.widens = !output_is_terminal();
	/* In a recording those who have ended are what people look for. */
	smi.style.all = smi.style.all || smi.from.file;
	smi.from.is_state = true;
	r = session_start(&session, "smi", &smi.from, &smi.query.filter);
	if (r != 0)
		return r;
	if (smi.json)
		smi.commands = command_lines_init(&smi.lines, session);
	r = smi.again ? smi_loop(&smi, session) : smi_once(&smi, session);
	command_lines_deinit(&smi.lines);
	if (r < 0)
		return output_fail("smi", "cannot look at processes", r);
	return asked_for_exit(&smi.asked, output_finish());
}

const struct command smi_command = {
	.name = "smi",
	.summary = "devices and the processes that hold their memory",
	.run = smi_run,
};
