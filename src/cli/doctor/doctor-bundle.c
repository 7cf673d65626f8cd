/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A file for a bug report: what the doctor found, what the caller's own processes hold, and
 * versions. It contains no buffer names, and only totals of other users.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <ttmem/ttmem.h>
#include <unistd.h>

#include "answers/document.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/emit.h"
#include "base/files/user-file.h"
#include "cli/doctor/doctor.h"
#include "model/snapshot.h"
#include "model/types.h"

/* The settings that change what is seen. Paths in them are the caller's own. */
static const char *const doctor_settings[] = {
	"TTMEM",
	"TTMEM_HISTORY",
	"TTMEM_ROOM",
	"TTMEM_SOCKET",
	"TTMEM_STACKS",
	"TTMEM_STACK_DEPTH",
	"TT_ALLOC_SERVER_SOCKET",
	"TT_ALLOC_TRACKING_ENABLED",
	"TT_BUFFER_DEBUG_LOG",
	"TT_VISIBLE_DEVICES",
};

#define DOCTOR_LINE 512u

struct doctor_bundle_row {
	struct doctor_row found;
	struct utsname machine;
	const char *kernel, *architecture; /* NULL = not known */
	uint32_t user_id;
	uint64_t version;
	const char *settings[ARRAY_SIZE(doctor_settings)]; /* "NAME=VALUE" */
	const char *const *environment;
	size_t setting_count;
	char lines[ARRAY_SIZE(doctor_settings)][DOCTOR_LINE];
	uint64_t others, others_bytes; /* processes of other users, and what they hold */
};

/* The next process of the caller. */
static const void *doctor_bundle_each(const void *document, size_t *at, struct fields_room *room)
{
	const struct doctor_bundle_row *row = document;
	const struct snapshot *snapshot = row->found.doctor->snapshot;

	(void)room;
	while (*at < snapshot->process_count) {
		const struct snapshot_process *process = &snapshot->processes[(*at)++];

		if (process->user_id == row->user_id)
			return process;
	}
	return NULL;
}

#define ROW struct snapshot_memory

static const struct field doctor_bundle_memory[] = {
	FIELD("used", BYTES, used),
	FIELD("buffers", NUMBER, buffers),
	FIELD("allocs", NUMBER, allocs),
	FIELD("frees", NUMBER, frees),
	FIELD("unknown_frees", NUMBER, unknown_frees),
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_part

static const struct field doctor_bundle_device[] = {
	FIELD("device", SHORT, device),
	FIELD("declared", BOOL, facts.declared),
#define TTMEM_TYPE(number, name, ...) FIELD_STRUCT(#name, memory[number], doctor_bundle_memory),
#include <ttmem/types.def>
	FIELD_END,
};

#undef ROW
#define ROW struct snapshot_process

static const struct field doctor_bundle_process[] = {
	FIELD("pid", SHORT, id.pid),
	FIELD("comm", TEXT, comm),
	FIELD_OR_NULL("source", TEXT, source),
	FIELD("alive", BOOL, alive),
	FIELD("exact", BOOL, exact),
	FIELD_ARRAY_AT("devices", ROWS, parts, part_count, .fields = doctor_bundle_device),
	FIELD_END,
};

#undef ROW
#define ROW struct doctor_bundle_row

static const struct field doctor_bundle_machine[] = {
	FIELD_OR_NOTHING("kernel", TEXT, kernel),
	FIELD_OR_NOTHING("architecture", TEXT, architecture),
	FIELD("user_id", SHORT, user_id),
	FIELD("ttmem_version", NUMBER, version),
	FIELD_END,
};

static const struct field doctor_bundle_members[] = {
	{.key = "machine", .kind = FIELD_OBJECT, .fields = doctor_bundle_machine},
	FIELD_ARRAY_AT("environment", TEXTS, environment, setting_count),
	FIELD_MORE_OF(found, doctor_members),
	FIELD_MADE("processes", doctor_bundle_each, doctor_bundle_process),
	FIELD("others", NUMBER, others),
	FIELD("others_bytes", BYTES, others_bytes),
	FIELD_END,
};

/* Notes name processes of all users, so they are left out. */
const struct document doctor_bundle_document = {
	.schema = "ttmem.bundle/1",
	.title = "ttmem doctor --bundle: for a bug report",
	.members = doctor_bundle_members,
	.has = DOCUMENT_LIST,
};

static void doctor_bundle_set(struct doctor_bundle_row *row)
{
	const struct snapshot *snapshot = row->found.doctor->snapshot;
	uint64_t bytes, buffers;

	if (uname(&row->machine) == 0) {
		row->kernel = row->machine.release;
		row->architecture = row->machine.machine;
	}
	row->environment = row->settings;
	for (size_t i = 0; i < ARRAY_SIZE(doctor_settings); i++) {
		const char *value = getenv(doctor_settings[i]);
		char *line = row->lines[row->setting_count];

		if (!value)
			continue;
		(void)snprintf(line, DOCTOR_LINE, "%s=%s", doctor_settings[i], value);
		row->settings[row->setting_count++] = line;
	}
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].user_id == row->user_id)
			continue;
		snapshot_process_totals(&snapshot->processes[i], &bytes, &buffers);
		row->others++;
		row->others_bytes += bytes;
	}
}

int doctor_bundle(const struct doctor *doctor, const char *path)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	uint32_t user = geteuid();
	struct doctor_bundle_row row = {
		.found = doctor_row_of(doctor, &user),
		.user_id = user,
		.version = TTMEM_VERSION_MAJOR * 10000u + TTMEM_VERSION_MINOR * 100u +
			   TTMEM_VERSION_PATCH,
	};
	const struct document_about about = {
		.time_ns = doctor->snapshot->time_ns,
		.is_partial = doctor->lost,
	};
	struct emit json;
	int fd = user_file_open(path, O_TRUNC, 0600);

	if (fd < 0)
		return fd;
	file = fdopen(fd, "w");
	if (!file) {
		close(fd);
		return -ENOMEM;
	}
	json = EMIT_INIT(file);
	doctor_bundle_set(&row);
	document_put_about(&json, &doctor_bundle_document, &about, &row);
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
