/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ttmem doctor finds. Every kind of finding is one row of a table (doctor-kinds.c): its id,
 * which never changes, its severity, why it matters and what to do. The checks only say which kind,
 * of which process, and what they saw; they are grouped by what they examine: processes, memory,
 * the machine, and what the driver and tt-metal report.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answers/fields.h"
#include "book/format/layout.h"

struct document;
struct session;
struct snapshot;
struct snapshot_process;

enum doctor_level {
	DOCTOR_INFO = 0, /* good to know; does not count in the exit code */
	DOCTOR_WARNING = 1,
	DOCTOR_ERROR = 2,
};

enum doctor_kind_id {
	DOCTOR_TRACKING_OFF,
	DOCTOR_TRACKING_DISABLED,
	DOCTOR_TRACKING_PAUSED,
	DOCTOR_NEVER_CALLED,
	DOCTOR_LIBRARY_MISSING,
	DOCTOR_LIBRARY_REPLACED,
	DOCTOR_LIBRARY_OTHER,
	DOCTOR_METAL_FOUND,
	DOCTOR_TRACKING_GAVE_UP,
	DOCTOR_METAL_UNTRACKED,
	DOCTOR_BOOK_HIDDEN,
	DOCTOR_BOOK_REFUSED,
	DOCTOR_BOOK_LEFT,
	DOCTOR_BOOK_LIMITED,
	DOCTOR_BOOK_FULL,
	DOCTOR_EVENTS_LOST,
	DOCTOR_NAMES_LOST,
	DOCTOR_STACKS_LOST,
	DOCTOR_STACKS_OFF,
	DOCTOR_STACKS_UNSENT,
	DOCTOR_PROCESS_UNREADABLE,
	DOCTOR_NOTHING_TRACKED,
	DOCTOR_NOTHING_REPORTED,
	DOCTOR_TOTAL_SMALL,
	DOCTOR_DRAM_ONLY,
	DOCTOR_PEAK_PAST,
	DOCTOR_FREES_UNKNOWN,
	DOCTOR_DAEMON_NONE,
	DOCTOR_DAEMON_SILENT,
	DOCTOR_DAEMON_STRANGER,
	DOCTOR_DAEMON_BLIND,
	DOCTOR_DAEMON_PARTIAL,
	DOCTOR_DAEMON_FORGETS,
	DOCTOR_DAEMON_DOOR,
	DOCTOR_OLD_SERVER,
	DOCTOR_OLD_SOCKET,
	DOCTOR_CLOCK_SLOW,
	DOCTOR_CLOCK_WRONG,
	DOCTOR_OTHERS_UNSEEN,
	DOCTOR_CONTAINER,
	DOCTOR_DRIVER_NONE,
	DOCTOR_DEVICE_UNTRACKED,
	DOCTOR_DEVICE_UNMATCHED,
	DOCTOR_CARD_UNAVAILABLE,
	DOCTOR_OVER_LIMIT,
	DOCTOR_THERMAL_TRIP,
	DOCTOR_STALE_AFTER_RESET,
	DOCTOR_REGION_STALE,
	DOCTOR_REGION_CLAIM,
	DOCTOR_REGION_MANY,
	DOCTOR_CAPACITY_REFUSED,
	DOCTOR_DEVICES_MANY,
	DOCTOR_REGION_DIFFERS,
	DOCTOR_REGION_UNREADABLE,
	DOCTOR_REGION_BROKEN,
	DOCTOR_KERNEL_NODE,
	DOCTOR_KERNEL_READY,
	DOCTOR_KERNEL_SHARE,
	DOCTOR_KINDS,
};

struct doctor_kind {
	const char *id;
	enum doctor_level level;
	const char *why;
	const char *fix;
};

extern const struct doctor_kind doctor_kinds[DOCTOR_KINDS];

struct doctor_finding {
	enum doctor_kind_id kind;
	uint32_t pid;     /* 0 = not about a process */
	uint32_t user_id; /* the owner of the process */
	char *what;
	const char *fix; /* what to do, if the kind's advice is too general; NULL = that */
};

/* What is known about the daemon. */
struct doctor_daemon {
	bool answers;
	bool is_outside; /* of our pid namespace: its pid is one of another */
	uint32_t pid;
	uint32_t user_id;
	bool you_see_all;
	char version[32];
};

struct doctor {
	uint32_t only_pid; /* 0 = all */
	struct session *session;
	struct snapshot *snapshot;
	struct doctor_daemon daemon;
	uint32_t looked_at; /* processes examined */
	uint32_t tracked;
	uint32_t *launchers; /* pids above tracked processes, as far as they were needed; owned */
	size_t launcher_count, launcher_capacity;
	bool has_launchers;

	struct doctor_finding *findings;
	size_t count, capacity;
	bool lost; /* a finding was dropped: there are too many */
};

/* Adds a finding; @format says what was seen. */
void doctor_tell(struct doctor *doctor, enum doctor_kind_id kind, uint32_t pid, uint32_t user_id,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Gives the finding that was added last an advice of its own. */
void doctor_advise(struct doctor *doctor, const char *fix);

/* The checks. A negative errno only if nothing could be examined at all. */
int doctor_look_at_processes(struct doctor *doctor);
void doctor_look_at_memory(struct doctor *doctor);
int doctor_look_at_daemon(struct doctor *doctor);
void doctor_look_at_machine(struct doctor *doctor);
void doctor_look_at_sources(struct doctor *doctor);

bool doctor_has_told(const struct doctor *doctor, enum doctor_kind_id kind, uint32_t pid);

/* The driver's nodes that a process has open. */
size_t doctor_count_nodes(const struct snapshot *snapshot, const struct snapshot_process *process);

/* What to do about it. */
const char *doctor_advice(const struct doctor_finding *finding);

const char *doctor_level_name(uint32_t level); /* enum doctor_level; NULL = none */

struct doctor_memory {
	uint64_t used, buffers;
};

/* What the live processes hold. */
struct doctor_totals {
	struct doctor_memory memory[BOOK_TYPES];
	uint64_t bytes, buffers;
};

/* The document. */
struct doctor_row {
	const struct doctor *doctor;
	const uint32_t *only_user; /* NULL = details of the processes of all users */
	bool is_ill;
	struct doctor_totals totals;
};

extern const struct field doctor_members[];
extern const struct document doctor_document, doctor_bundle_document;

struct doctor_row doctor_row_of(const struct doctor *doctor, const uint32_t *only_user);

/* Writes a file for a bug report. 0 or a negative errno. */
int doctor_bundle(const struct doctor *doctor, const char *path);
