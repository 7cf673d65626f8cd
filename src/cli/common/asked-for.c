/* SPDX-License-Identifier: Apache-2.0 */

/* Explains empty answers. */

#include "cli/common/asked-for.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/session.h"
#include "model/amount.h"
#include "model/filter.h"
#include "model/snapshot.h"
#include "model/types.h"
#include "source/books/scan.h"

#define ASKED_FOR_SHOWN 16u /* devices that are there */
#define ASKED_FOR_NAMED 4u  /* processes in a note */
#define ASKED_FOR_NOTE 512u

static void asked_for_print_device(const struct filter_device *device)
{
	fprintf(stderr, device->by_id ? "0x%" PRIx64 : "%" PRIu64, device->value);
}

static bool asked_for_has_device(const struct snapshot *snapshot,
				 const struct filter_device *wanted)
{
	const struct filter one = {.device_count = 1, .devices = {*wanted}};

	for (size_t i = 0; i < snapshot->device_count; i++) {
		if (filter_wants_device(&one, snapshot->devices[i].device,
					snapshot->devices[i].unique_id))
			return true;
	}
	/* A process may number a device otherwise than its row. */
	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];

		for (size_t k = 0; k < process->part_count; k++) {
			if (filter_wants_device(&one, process->parts[k].device,
						process->parts[k].facts.unique_id))
				return true;
		}
	}
	return false;
}

static void asked_for_tell_device(const struct asked_for *asked, const struct snapshot *snapshot,
				  const struct filter_device *wanted)
{
	fprintf(stderr, "ttmem %s: there is no device ", asked->command);
	asked_for_print_device(wanted);
	for (size_t i = 0; i < bits_min(snapshot->device_count, ASKED_FOR_SHOWN); i++) {
		/* Different cards may have the same number. */
		if (i == 0 || snapshot->devices[i].device != snapshot->devices[i - 1].device)
			fprintf(stderr, "%s%" PRIu32, i ? ", " : "; there are ",
				snapshot->devices[i].device);
	}
	fputs(snapshot->device_count > ASKED_FOR_SHOWN ? " and more\n" : "\n", stderr);
}

static const struct snapshot_process *asked_for_process(const struct snapshot *snapshot,
							uint32_t pid)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].id.pid == pid)
			return &snapshot->processes[i];
	}
	return NULL;
}

/* Whether it is there. */
static bool asked_for_check_process(const struct asked_for *asked, struct session *session,
				    const struct snapshot *snapshot)
{
	uint32_t pid = asked->filter->pid;
	const struct snapshot_process *process = asked_for_process(snapshot, pid);

	if (process && !process->untracked && (process->books || !asked->rows))
		return true;
	fprintf(stderr, "ttmem %s: ", asked->command);
	if (!process && session_recording(session))
		fprintf(stderr, "the recording has no process %" PRIu32 " at that moment\n", pid);
	else if (process && !process->untracked)
		fprintf(stderr,
			"of process %" PRIu32 " only totals are known, or you may not see more\n",
			pid);
	else if (!process && proc_start_ticks(&session_scan(session)->proc, pid) == 0)
		fprintf(stderr, "there is no process %" PRIu32 "\n", pid);
	else
		fprintf(stderr,
			"process %" PRIu32 " is not tracked, or you may not see it: \"ttmem doctor "
			"--pid %" PRIu32 "\" says why\n",
			pid, pid);
	return false;
}

static bool asked_for_has_user(const struct snapshot *snapshot, const struct filter *filter)
{
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (filter_wants_user(filter, snapshot->processes[i].user,
				      snapshot->processes[i].user_id))
			return true;
	}
	return false;
}

void asked_for_check(struct asked_for *asked, struct session *session,
		     const struct snapshot *snapshot)
{
	const struct filter *filter = asked->filter;

	for (uint32_t i = 0; i < filter->device_count; i++) {
		if (asked_for_has_device(snapshot, &filter->devices[i]))
			continue;
		asked_for_tell_device(asked, snapshot, &filter->devices[i]);
		asked->is_missing = true;
	}
	if (filter->user && !asked_for_has_user(snapshot, filter)) {
		fprintf(stderr, "ttmem %s: there is no process of user \"", asked->command);
		text_put(stderr, filter->user);
		fputs("\"\n", stderr);
		asked->is_missing = true;
	}
	if (filter->pid && !asked_for_check_process(asked, session, snapshot))
		asked->is_missing = true;
}

/* Whether it uses a device of the filter, and no book of it says how. */
static bool asked_for_is_untracked(const struct filter *filter, const struct snapshot *snapshot,
				   const struct snapshot_process *process)
{
	bool is_there = filter->device_count == 0;

	if (!process->alive || process->books || !filter_wants_pid(filter, process->id.pid) ||
	    !(process->untracked || strcmp(process->source, "tt-metal") == 0))
		return false;
	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_device *row = &snapshot->devices[process->parts[i].row];

		is_there |= filter_wants_device(filter, row->device, row->unique_id);
	}
	return is_there;
}

void asked_for_note_untracked(const struct asked_for *asked, struct snapshot *snapshot)
{
	char text[ASKED_FOR_NOTE] = "", comm[TEXT_ESCAPE_SIZE(32)], number[TEXT_NUMBER_SIZE];
	size_t count = 0, used = 0;

	for (size_t i = 0; i < snapshot->process_count; i++) {
		const struct snapshot_process *process = &snapshot->processes[i];
		struct snapshot_memory amount;

		if (!asked_for_is_untracked(asked->filter, snapshot, process))
			continue;
		if (count++ >= ASKED_FOR_NAMED)
			continue;
		amount = amount_of_process(process, AMOUNT_ANYWHERE, AMOUNT_ALL);
		text_fit(process->comm, 16, comm, sizeof(comm));
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%spid %" PRIu32 " (%s)%s%s", count > 1 ? ", " : "",
					 process->id.pid, comm, amount.used ? " with " : "",
					 amount.used ? text_size(amount.used, number) : "");
		used = bits_min(used, sizeof(text) - 1);
	}
	if (count)
		snapshot_note(snapshot, "not tracked, so its buffers are not known: %s%s", text,
			      count > ASKED_FOR_NAMED ? " and more" : "");
}

int asked_for_exit(const struct asked_for *asked, int code)
{
	return code == COMMAND_OK && asked->is_missing && !asked->is_json ? COMMAND_FAILED : code;
}

void asked_for_tell_none(const struct asked_for *asked, const char *what)
{
	const struct filter *filter = asked->filter;

	fprintf(stderr, "ttmem %s: no %s", asked->command, what);
	if (filter->has_type)
		fprintf(stderr, " of type %s", types_name(filter->type));
	for (uint32_t i = 0; i < filter->device_count; i++) {
		fputs(i ? ", " : " on device ", stderr);
		asked_for_print_device(&filter->devices[i]);
	}
	if (filter->pid)
		fprintf(stderr, " of process %" PRIu32, filter->pid);
	fputc('\n', stderr);
}
