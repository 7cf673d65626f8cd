/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem smi: devices and processes at a glance, once or refreshed. */

#include "cli/smi/smi.h"

#include <errno.h>

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
#include "model/json/document.h"
#include "model/snapshot.h"

struct smi {
	struct snapshot_request request;
	struct filter filter;
	struct smi_style style;
	bool again;
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

static void smi_write(const struct smi *smi, FILE *out, const struct snapshot *snapshot)
{
	struct emit json = EMIT_INIT(out);

	if (smi->json)
		document_smi(&json, snapshot, &smi->filter, smi->commands);
	else if (smi->csv)
		smi_csv(out, snapshot, &smi->filter);
	else
		smi_table(out, snapshot, &smi->filter, &smi->style);
}

static int smi_redraw(struct smi *smi, const struct snapshot *snapshot)
{
	FILE *out = screen_begin(&smi->screen);

	if (!out)
		return -ENOMEM;
	smi->style.cuts = true;
	smi->style.width = output_columns(); /* the terminal may have been resized */
	smi_write(smi, out, snapshot);
	return screen_show(&smi->screen, out);
}

static int smi_once(struct smi *smi, struct session *session)
{
	CLEANUP(session_cleanup_snapshot) struct snapshot *snapshot = NULL;
	int r = session_take(session, &smi->request, &snapshot);

	if (r < 0)
		return r;
	if (smi->again && output_is_terminal() && !smi->json && !smi->csv)
		return smi_redraw(smi, snapshot);
	if (!smi->again)
		asked_for_check(&smi->asked, session, snapshot);
	if (!smi->json && !smi->csv)
		session_print_moment(session);
	smi_write(smi, stdout, snapshot);
	return 0;
}

static int smi_loop(struct smi *smi, struct session *session)
{
	int r = 0;

	output_catch_stop();
	while (r == 0 && !output_is_stopped() && !output_is_broken()) {
		r = smi_once(smi, session);
		if (r == 0 && fflush(stdout) == 0)
			output_sleep(smi->refresh_ms);
	}
	screen_end(&smi->screen);
	return r;
}

static int smi_parse(struct smi *smi, int argc, char **argv)
{
	const struct options_item items[] = {
		{'w', "watch", NULL, "refresh until interrupted", &smi->again, NULL},
		{'r', "refresh", "MS", "milliseconds between two refreshes (1000)",
		 &smi->refresh_ms, options_u32},
		{'d', "device", "DEV|UID", "only this device; may be given again", &smi->filter,
		 options_device},
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
	};
	int r = options_parse_only(&options, argc, argv);

	if (r == 0 && smi->json && smi->csv)
		r = options_mistake("smi", "--json or --csv, not both");
	if (r == 0 && (smi->hosts.count || smi->hosts.prometheus) && (smi->csv || smi->again))
		r = options_mistake("smi", "other machines: text or --json, and once");
	if (r == 0 && smi->from.file && (smi->again || smi->hosts.count || smi->hosts.prometheus))
		r = options_mistake("smi", "a recording is shown once, and has one machine");
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
	smi.asked =
		(struct asked_for){.command = "smi", .filter = &smi.filter, .is_json = smi.json};
	smi.style.colours = output_has_colours();
	smi.style.utf8 = output_is_utf8();
	smi.style.width = output_columns();
	smi.style.widens = !output_is_terminal();
	/* In a recording those who have ended are what people look for. */
	smi.style.all = smi.style.all || smi.from.file;
	r = session_start(&session, "smi", &smi.from, &smi.filter);
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
