/* SPDX-License-Identifier: Apache-2.0 */

/* The moment of a recording is a snapshot like any other; the course up to it is fed to the formats. */

#include "cli/export/export-recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/export/export-feed.h"
#include "cli/export/export-file.h"
#include "cli/export/export.h"
#include "model/snapshot.h"
#include "recording/read/recording-source.h"
#include "source/collect.h"
#include "source/source.h"

struct export_recorded {
	struct recording *recording;
	struct recording_moment moment;
	struct source *source;
	struct snapshot *snapshot;
	struct export_feed *feed;
};

static void recorded_deinit(struct export_recorded *recorded)
{
	export_feed_free(recorded->feed);
	snapshot_free(recorded->snapshot);
	source_free(recorded->source);
	recording_free(recorded->recording);
}

static int recorded_fail(const struct export_options *options, const char *why)
{
	char path[1024];

	text_escape(options->from, path, sizeof(path));
	fprintf(stderr, "ttmem export: %s: %s\n", path, why);
	return COMMAND_FAILED;
}

/* A single device helps to find a peak or a failure; more are filtered later. */
static struct recording_filter recorded_filter(const struct export_options *options)
{
	const struct filter *filter = &options->request.filter;
	struct recording_filter wanted = RECORDING_FILTER_ALL;

	if (filter->has_pid)
		wanted.pid = filter->pid;
	if (filter->has_type)
		wanted.types = 1u << filter->type;
	if (filter->device_count == 1 && !filter->devices[0].by_id)
		wanted.device = (uint32_t)filter->devices[0].value;
	return wanted;
}

/* 0 or an exit code, after telling why. */
static int recorded_open(const struct export_options *options, struct export_recorded *recorded)
{
	const char *at = options->at ? options->at : "end";
	struct recording_filter wanted = recorded_filter(options);
	char why[RECORDING_WHY_SIZE] = "";

	if (recording_open(&recorded->recording, options->from, why) < 0) {
		char text[TEXT_ESCAPE_SIZE(RECORDING_WHY_SIZE)];

		text_escape(why, text, sizeof(text)); /* it names the file */
		fprintf(stderr, "ttmem export: %s\n", text);
		return COMMAND_FAILED;
	}
	if (recording_find(recorded->recording, at, &wanted, &recorded->moment, why) < 0)
		return recorded_fail(options, why);
	return 0;
}

static int recorded_take(struct export_options *options, struct export_recorded *recorded)
{
	struct collect_sources sources;
	int r = recording_source_new(&recorded->source, recorded->recording, &recorded->moment);

	if (r < 0)
		return r;
	/* What the dead have left is what a recording that has ended is about. */
	options->request.ended = true;
	options->request.namer = recording_namer(recorded->recording);
	recording_source_sources(recorded->source, &sources);
	return collect_machine(&sources, &options->request, &recorded->snapshot);
}

static bool recorded_has_process(const struct recording *recording, uint32_t pid)
{
	for (size_t i = 0; i < recording_facts(recording)->books; i++) {
		if (recording_owner(recording, i)->book.pid == pid)
			return true;
	}
	return false;
}

/* A report is of one process: the only one, if none is named. */
static int recorded_choose(struct export_options *options, const struct recording *recording)
{
	struct filter *filter = &options->request.filter;
	char why[64];

	if (filter->has_pid && !recorded_has_process(recording, filter->pid)) {
		snprintf(why, sizeof(why), "there is no process %" PRIu32 " in it", filter->pid);
		return recorded_fail(options, why);
	}
	if (filter->has_pid || !options->report)
		return 0;
	if (recording_facts(recording)->books != 1)
		return recorded_fail(options, "there are several processes in it: --pid PID");
	filter->has_pid = true;
	filter->pid = recording_owner(recording, 0)->book.pid;
	return 0;
}

static void recorded_tell_notes(const struct recording *recording)
{
	const struct recording_facts *facts = recording_facts(recording);

	if (facts->missed)
		fprintf(stderr,
			"note: %" PRIu64 " events are missing: the process was faster than the "
			"recorder\n",
			facts->missed);
	if (!facts->is_complete)
		fprintf(stderr,
			"note: the recording was not ended in order: what is in it counts\n");
}

static int recorded_write(struct export_options *options, struct export_recorded *recorded)
{
	struct export_counts counts = {.snapshot = recorded->snapshot,
				       .filter = &options->request.filter};
	struct export_target target = {
		.snapshot = recorded->snapshot,
		.command = recording_facts(recorded->recording)->command,
		.start_ns = recording_facts(recorded->recording)->start_ns,
	};
	int r = export_feed_new(&recorded->feed, recorded->recording, &options->request.filter,
				&recorded->moment);

	if (r == 0 && !options->form->event)
		r = export_feed_counts(recorded->feed, &counts);
	if (r == 0) {
		target.owners = export_feed_owners(recorded->feed, &target.owner_count);
		target.counts = counts.list;
		target.count_count = counts.count;
		r = export_file(options, &target, export_feed_course, recorded->feed);
	} else {
		r = output_fail("export", "cannot read the recording", r);
	}
	free(counts.list);
	return r;
}

int export_recording(struct export_options *options)
{
	CLEANUP(recorded_deinit) struct export_recorded recorded = {.recording = NULL};
	int r = recorded_open(options, &recorded);

	if (r == 0)
		r = recorded_choose(options, recorded.recording);
	if (r != 0)
		return r;
	r = recorded_take(options, &recorded);
	if (r < 0)
		return output_fail("export", "cannot read the recording", r);
	recorded_tell_notes(recorded.recording);
	if (options->report)
		return export_report(options, recording_source_scan(recorded.source),
				     recorded.snapshot);
	return recorded_write(options, &recorded);
}
