/* SPDX-License-Identifier: Apache-2.0 */

/* Sessions of a recording: --from FILE --at TIME. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/options.h"
#include "cli/common/output.h"
#include "cli/common/session-private.h"
#include "cli/common/session.h"
#include "model/filter.h"
#include "model/snapshot.h"
#include "source/source.h"

struct recording *session_recording(struct session *session)
{
	return session->recording;
}

const struct recording_moment *session_moment(const struct session *session)
{
	return &session->moment;
}

uint64_t session_now(const struct session *session)
{
	return session->recording ? session->moment.time_ns : clock_ns(CLOCK_REALTIME);
}

int session_move(struct session *session, const struct recording_moment *moment)
{
	struct source *books;
	int r = recording_source_new(&books, session->recording, moment);

	if (r < 0)
		return r;
	source_free(session->books);
	session->books = books;
	session->moment = *moment;
	return 0;
}

/* Only a number can be a device of all processes; a unique id is of one card. */
static struct recording_filter session_filter(const struct filter *filter)
{
	struct recording_filter ret = RECORDING_FILTER_ALL;

	if (!filter)
		return ret;
	if (filter->pid)
		ret.pid = filter->pid;
	if (filter->has_type)
		ret.types = 1u << filter->type;
	if (filter->device_count == 1 && !filter->devices[0].by_id)
		ret.device = (uint32_t)filter->devices[0].value;
	return ret;
}

static int session_tell(const char *command, const char *why)
{
	char shown[2 * RECORDING_WHY_SIZE];

	text_escape(why, shown, sizeof(shown));
	fprintf(stderr, "ttmem %s: %s\n", command, shown);
	return COMMAND_FAILED;
}

/* Each book of a recording is a file in memory, and there may be more than the thousand of a shell. */
static void session_raise_limits(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* then opening says what is missing */
}

/* Whether the filter accepts nothing that is in use. */
static bool session_is_empty(struct session *session, const struct filter *filter)
{
	struct snapshot_request request = {.filter = filter ? *filter : (struct filter){0}};
	struct snapshot *snapshot = NULL;
	uint64_t buffers = 0;

	if (session_take(session, &request, &snapshot) < 0)
		return false; /* the command fails by itself */
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			const struct snapshot_part *part = &process->parts[k];
			const struct snapshot_device *row = &snapshot->devices[part->row];

			for (uint32_t type = 0; type < BOOK_TYPES; type++) {
				if (!filter ||
				    (filter_wants_pid(filter, process->id.pid) &&
				     filter_wants_device(filter, row->device, row->unique_id) &&
				     (!filter->has_type || filter->type == type)))
					buffers |= part->memory[type].buffers;
			}
		}
	}
	snapshot_free(snapshot);
	return buffers == 0;
}

/* The end of a run that freed everything shows nothing; its peak does. */
static int session_prefer_peak(struct session *session, const struct filter *filter,
			       const struct recording_filter *whose)
{
	struct recording_moment moment;
	char why[RECORDING_WHY_SIZE];
	int r = 0;

	if (!session_is_empty(session, filter) ||
	    recording_find(session->recording, "peak", whose, &moment, why) < 0)
		return 0;
	r = session_move(session, &moment);
	session->is_peak = r == 0;
	return r;
}

static int session_open(struct session **ret_session, const char *command,
			const struct options_from *from, const struct filter *filter)
{
	const struct recording_filter whose = session_filter(filter);
	struct session *session = calloc(1, sizeof(*session));
	struct recording_moment moment;
	char why[RECORDING_WHY_SIZE];
	int r;

	if (!session)
		return output_fail(command, "cannot open the recording", -ENOMEM);
	*ret_session = session;
	session_raise_limits();
	if (recording_open(&session->recording, from->file, why) < 0)
		return session_tell(command, why);
	if (recording_find(session->recording, from->at ? from->at : "end", &whose, &moment, why) <
	    0)
		return session_tell(command, why);
	r = session_move(session, &moment);
	if (r == 0 && from->is_state && !from->at)
		r = session_prefer_peak(session, filter, &whose);
	return r < 0 ? output_fail(command, "cannot read the recording", r) : 0;
}

int session_start(struct session **ret_session, const char *command,
		  const struct options_from *from, const struct filter *filter)
{
	int r;

	if (from->file)
		return session_open(ret_session, command, from, filter);
	if (from->at)
		return options_exit(options_mistake(
			command, "--at is a moment of a recording, and needs --from FILE"));
	r = session_new(ret_session);
	return r < 0 ? output_fail(command, "cannot look at processes", r) : 0;
}

void session_print_moment(const struct session *session)
{
	const struct recording_facts *facts;
	time_t seconds = (time_t)(session->moment.time_ns / NS_PER_S);
	char when[16] = "";
	struct tm local;

	if (!session->recording)
		return;
	facts = recording_facts(session->recording);
	if (localtime_r(&seconds, &local))
		(void)strftime(when, sizeof(when), "%T", &local); /* it fits */
	text_put(stdout, facts->path);
	printf(" at %.3f s (%s)", (double)(session->moment.time_ns - facts->start_ns) / 1e9, when);
	if (facts->missed)
		printf(", %.2f %% of events; totals exact",
		       100.0 * (double)facts->events / (double)(facts->events + facts->missed));
	puts(facts->is_complete ? "" : "; its end is missing");
}
