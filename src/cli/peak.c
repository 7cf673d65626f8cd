/* SPDX-License-Identifier: Apache-2.0 */

/* ttmem peak: what was live at the highest moment, by call site. */

#include <errno.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "cli/common/asked-for.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/peak-text.h"
#include "cli/common/session.h"
#include "model/json/document.h"
#include "model/sites/group.h"
#include "model/snapshot-peak.h"
#include "model/snapshot.h"

#define PEAK_ROWS 20u /* of each peak: as many as a person reads */

struct peak {
	struct snapshot_request request;
	enum group_kind kind;
	struct options_from from;
	bool json;
};

static int peak_print(const struct peak *peak, const struct snapshot *snapshot)
{
	const struct peak_text text = {.out = stdout,
				       .indent = "",
				       .kind = peak->kind,
				       .rows = PEAK_ROWS,
				       .is_spaced = true};
	int r = peak_text_put(&text, snapshot);

	session_print_notes(snapshot);
	return r;
}

static int peak_by(void *target, const char *text)
{
	enum group_kind *kind = target;
	int r = group_parse(text, kind);

	/* Which thread allocated what has been freed since is not known. */
	return r == 0 && *kind == GROUP_THREAD ? -EINVAL : r;
}

static int peak_parse(struct peak *peak, int argc, char **argv)
{
	const struct options_item items[] = {
		{0, "pid", "PID", "only of this process", &peak->request.filter, options_pid},
		{'d', "device", "DEV|UID", "only on this device", &peak->request.filter,
		 options_device},
		{0, "type", "TYPE", "DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE, CB or KERNEL",
		 &peak->request.filter, options_type},
		{0, "by", "name|phase|site", "add up by this (site)", &peak->kind, peak_by},
		OPTIONS_FROM(&peak->from),
		{0, "json", NULL, "as JSON", &peak->json, NULL},
	};
	const struct options options = {
		.command = "peak",
		.shows_sizes = true,
		.summary = "What was live at the highest moment of each process, device and type.",
		.items = items,
		.count = ARRAY_SIZE(items),
	};

	return options_parse_only(&options, argc, argv);
}

static int peak_write(const struct peak *peak, const struct session *session,
		      struct snapshot *snapshot)
{
	struct emit json = EMIT_INIT(stdout);

	snapshot_sort_peaks(snapshot);
	if (peak->json)
		return document_peaks(&json, snapshot, peak->kind);
	output_page();
	session_print_moment(session);
	return peak_print(peak, snapshot);
}

static int peak_run(int argc, char **argv)
{
	CLEANUP(session_cleanup_snapshot) struct snapshot *snapshot = NULL;
	CLEANUP(session_cleanup) struct session *session = NULL;
	struct peak peak = {.request = {.buffers = true, .at_peak = true, .ended = true},
			    .kind = GROUP_SITE};
	struct asked_for asked = {.command = "peak", .filter = &peak.request.filter, .rows = true};
	int r = peak_parse(&peak, argc, argv);

	if (r != 0)
		return options_exit(r);
	output_start();
	asked.is_json = peak.json;
	r = session_start(&session, "peak", &peak.from, &peak.request.filter);
	if (r != 0)
		return r;
	if (peak.kind == GROUP_SITE)
		peak.request.namer = session_namer(session);
	r = session_take(session, &peak.request, &snapshot);
	if (r == 0)
		asked_for_check(&asked, session, snapshot);
	if (r == 0 && !asked.is_missing && snapshot->peak_count == 0 && !peak.json)
		asked_for_tell_none(&asked, "peak");
	if (r == 0)
		r = peak_write(&peak, session, snapshot);
	if (r < 0)
		return output_fail("peak", "cannot look at processes", r);
	return asked_for_exit(&asked, output_finish());
}

const struct command peak_command = {
	.name = "peak",
	.summary = "what was live at the highest moment",
	.run = peak_run,
};
