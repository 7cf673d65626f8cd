/* SPDX-License-Identifier: Apache-2.0 */

/* The story of the demo: incidents and the killed process, one line each. */

#include "cli/demo.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/run/run-family.h"
#include "model/sites/group.h"
#include "model/snapshot.h"
#include "model/types.h"

static bool story_is_new(struct story *story, uint64_t about)
{
	for (unsigned int i = 0; i < story->count; i++) {
		if (story->told[i] == about)
			return false;
	}
	return story->count < ARRAY_SIZE(story->told);
}

static void story_tell(struct story *story, uint64_t about, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void story_tell(struct story *story, uint64_t about, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(story->lines[story->count], sizeof(story->lines[0]), format, arguments);
	va_end(arguments);
	story->told[story->count++] = about;
}

/* Names need no escaping: they come from the demo's own workloads. */
static const char *story_or(const char *text, const char *otherwise)
{
	return text ? text : otherwise;
}

static void story_incident(struct story *story, const struct snapshot *snapshot,
			   const struct snapshot_incident *incident)
{
	const struct snapshot_process *process = &snapshot->processes[incident->process];
	uint64_t about = hash_u64(hash_bytes(incident->kind, strlen(incident->kind)) ^
				  incident->address ^ (uint64_t)process->id.pid << 32);
	char size[TEXT_NUMBER_SIZE], largest[TEXT_NUMBER_SIZE];

	if (!story_is_new(story, about))
		return;
	if (strcmp(incident->kind, "double_free") == 0)
		story_tell(story, about,
			   "double free    %s on device %" PRIu32 ", pid %" PRIu32
			   "\n                 freed in \"%s\", freed again in \"%s\"",
			   story_or(incident->first.name, "(no name)"), incident->device,
			   process->id.pid, story_or(incident->first.phase, "-"),
			   story_or(incident->second.phase, "-"));
	else if (strcmp(incident->kind, "alloc_failed") == 0)
		story_tell(story, about,
			   "failed alloc   %s of %s on device %" PRIu32 ", pid %" PRIu32
			   "\n                 in \"%s\"; the largest free block had %s",
			   text_size(incident->size, size),
			   story_or(types_name(incident->type), "?"), incident->device,
			   process->id.pid, story_or(incident->second.phase, "-"),
			   incident->largest_free == UINT64_MAX
				   ? "unknown"
				   : text_size(incident->largest_free, largest));
}

/* What the killed process held, and the name with the largest share. */
static void story_killed(struct story *story, const struct snapshot *ended, uint32_t row)
{
	CLEANUP(group_list_deinit) struct group_list list = GROUP_LIST_NULL;
	const struct snapshot_process *process = &ended->processes[row];
	uint64_t bytes = 0, buffers = 0;
	const struct call_site *largest = NULL;
	char size[TEXT_NUMBER_SIZE];

	if (!story_is_new(story, process->id.pid) ||
	    group_buffers(ended, GROUP_NAME, true, &list) < 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		const struct call_site *group = &list.groups[i];

		if (group->process != row)
			continue;
		largest = largest ? largest : group;
		bytes += group->bytes;
		buffers += group->buffers;
	}
	story_tell(story, process->id.pid,
		   "killed -9      %s, pid %" PRIu32 ", left %" PRIu64 " buffer%s, %s"
		   "\n                 most of it: %s",
		   process->comm, process->id.pid, buffers, buffers == 1 ? "" : "s",
		   text_size(bytes, size), largest ? story_or(largest->name, "(no name)") : "-");
}

void story_follow(struct story *story, const struct snapshot *living, const struct family *family,
		  uint32_t killed_pid)
{
	const struct snapshot *ended = family->ended;

	for (size_t i = 0; i < living->incident_count; i++)
		story_incident(story, living, &living->incidents[i]);
	for (size_t i = 0; i < ended->incident_count; i++)
		story_incident(story, ended, &ended->incidents[i]);
	for (size_t i = 0; i < family->end_count; i++) {
		if (killed_pid && family->ends[i].pid == killed_pid)
			story_killed(story, ended, family->ends[i].process);
	}
}

void story_write(const struct story *story, FILE *out)
{
	for (unsigned int i = 0; i < story->count; i++)
		fprintf(out, "  %s\n", story->lines[i]);
}
