/* SPDX-License-Identifier: Apache-2.0 */

/* The moment of a recording is a snapshot like any other; the course up to it is fed to the formats. */

#include "cli/export/export-recording.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/common/session.h"
#include "cli/export/export-feed.h"
#include "cli/export/export-file.h"
#include "cli/export/export.h"
#include "model/snapshot.h"

bool export_recording_choose(struct export_options *options, const struct recording *recording)
{
	struct filter *filter = &options->request.filter;

	if (filter->pid)
		return true;
	if (recording_facts(recording)->books != 1)
		return false;
	filter->pid = recording_owner(recording, 0)->book.pid;
	return true;
}

static void recording_tell_notes(const struct recording_facts *facts)
{
	if (facts->missed)
		fprintf(stderr,
			"note: %" PRIu64 " event%s missing: the process was faster than the "
			"recorder\n",
			facts->missed, facts->missed == 1 ? " is" : "s are");
	if (!facts->is_complete)
		fprintf(stderr, "note: the end of the recording is missing\n");
}

int export_recording(const struct export_options *options, struct session *session,
		     struct snapshot *snapshot)
{
	struct recording *recording = session_recording(session);
	struct export_counts counts = {.snapshot = snapshot, .filter = &options->request.filter};
	struct export_target target = {
		.snapshot = snapshot,
		.command = recording_facts(recording)->command,
		.start_ns = recording_facts(recording)->start_ns,
	};
	struct export_feed *feed =
		export_feed_new(recording, counts.filter, session_moment(session));
	int r = 0;

	session_print_notes(snapshot);
	recording_tell_notes(recording_facts(recording));
	if (!options->form->event)
		r = export_feed_counts(feed, &counts);
	if (r == 0) {
		target.owners = export_feed_owners(feed, &target.owner_count);
		target.counts = counts.list;
		target.count_count = counts.count;
		r = export_file(options, &target, export_feed_course, feed);
	} else {
		r = output_fail("export", "cannot read the recording", r);
	}
	free(counts.list);
	export_feed_free(feed);
	return r;
}
