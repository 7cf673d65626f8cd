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

static void doctor_bundle_machine(struct emit *json)
{
	struct utsname machine;

	emit_open_object(json, "machine");
	if (uname(&machine) == 0) {
		emit_string(json, "kernel", machine.release);
		emit_string(json, "architecture", machine.machine);
	}
	emit_u64(json, "user_id", geteuid());
	emit_u64(json, "ttmem_version",
		 TTMEM_VERSION_MAJOR * 10000u + TTMEM_VERSION_MINOR * 100u + TTMEM_VERSION_PATCH);
	emit_close_object(json);
	emit_open_array(json, "environment");
	for (size_t i = 0; i < ARRAY_SIZE(doctor_settings); i++) {
		const char *value = getenv(doctor_settings[i]);
		char line[512];

		if (!value)
			continue;
		snprintf(line, sizeof(line), "%s=%s", doctor_settings[i], value);
		emit_string(json, NULL, line);
	}
	emit_close_array(json);
}

static void doctor_bundle_process(struct emit *json, const struct snapshot_process *process)
{
	emit_open_object(json, NULL);
	emit_u64(json, "pid", process->id.pid);
	emit_string(json, "comm", process->comm);
	emit_string(json, "source", process->source);
	emit_bool(json, "alive", process->alive);
	emit_bool(json, "exact", process->exact);
	emit_open_array(json, "devices");
	for (size_t i = 0; i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];

		emit_open_object(json, NULL);
		emit_u64(json, "device", part->device);
		emit_bool(json, "declared", part->facts.declared);
		for (uint32_t type = 0; type < BOOK_TYPES; type++) {
			emit_open_object(json, types_name(type));
			emit_u64(json, "used", part->memory[type].used);
			emit_u64(json, "buffers", part->memory[type].buffers);
			emit_u64(json, "allocs", part->memory[type].allocs);
			emit_u64(json, "frees", part->memory[type].frees);
			emit_u64(json, "unknown_frees", part->memory[type].unknown_frees);
			emit_close_object(json);
		}
		emit_close_object(json);
	}
	emit_close_array(json);
	emit_close_object(json);
}

static void doctor_bundle_processes(struct emit *json, const struct snapshot *snapshot)
{
	uint64_t others = 0, bytes, buffers, others_bytes = 0;

	emit_open_array(json, "processes");
	for (size_t i = 0; i < snapshot->process_count; i++) {
		if (snapshot->processes[i].user_id == geteuid()) {
			doctor_bundle_process(json, &snapshot->processes[i]);
			continue;
		}
		snapshot_process_totals(&snapshot->processes[i], &bytes, &buffers);
		others++;
		others_bytes += bytes;
	}
	emit_close_array(json);
	emit_u64(json, "others", others);
	emit_u64(json, "others_bytes", others_bytes);
}

int doctor_bundle(const struct doctor *doctor, const char *path)
{
	CLEANUP_FCLOSE FILE *file = NULL;
	uint32_t user = geteuid();
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
	document_open(&json, "ttmem.bundle/1", doctor->snapshot->time_ns);
	doctor_bundle_machine(&json);
	doctor_document(&json, doctor, &user);
	doctor_bundle_processes(&json, doctor->snapshot);
	/* Notes name processes of all users, so they are left out. */
	document_close_bare(&json);
	return fflush(file) == 0 && !ferror(file) ? 0 : -EIO;
}
