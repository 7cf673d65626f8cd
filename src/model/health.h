/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How the daemon is, by its own account: for /healthz, /metrics and "ttmem status". */

#include <stdbool.h>
#include <stdint.h>

#include "base/quota.h"
#include "model/last-hour.h"
#include "model/snapshot-recording.h"
#include "model/tally.h"
#include "model/types.h"

/*
 * What the daemon needs of the machine and others may have: it goes on without any of these, says
 * what is missing, and tries again.
 */
enum health_door_id {
	HEALTH_DOOR_NATIVE,  /* the socket of library and command */
	HEALTH_DOOR_LEGACY,  /* the socket of old clients */
	HEALTH_DOOR_HTTP,    /* the port */
	HEALTH_DOOR_TOKEN,   /* the file: without it HTTP shows no details */
	HEALTH_DOOR_JOURNAL, /* systemd's */
	HEALTH_DOOR_HISTORY, /* the state folder */
	HEALTH_DOOR_LOG,     /* the file that is printed to, if one was named */
	HEALTH_DOORS,
};

#define HEALTH_NOBODY UINT32_MAX

struct health_door {
	bool is_wanted; /* by the settings; else nothing below is set */
	bool is_open;
	uint32_t pid;      /* of the process that has it; 0 = none, or not known */
	uint32_t user_id;  /* of that process, or of what is in the way; or HEALTH_NOBODY */
	uint64_t since_ns; /* CLOCK_REALTIME of the last change */
	const char *where; /* path or address; borrowed */
	char problem[256]; /* one line; "" = none */
};

/* "ok", or "degraded": something does not work. NULL = neither */
const char *health_status(uint32_t is_well);

/* "native", "old_clients", ...; NULL = none */
const char *health_door_name(uint32_t id);

/* Whether something is missing. */
bool health_is_closed(const struct health_door *door);

/* The flight recorder. What it could not do is among the limits. */
struct health_flight {
	bool runs;
	uint64_t bytes, bytes_max; /* in memory */
	uint64_t events, rounds;   /* since the start */
	uint64_t files;            /* written since the start */
	uint32_t late_users;       /* of whom it has keyframes only at present */
};

/* The daemon's own state, for /healthz and /metrics. */
struct health {
	bool store_runs;
	uint64_t store_queued, store_written, store_dropped, store_bytes;
	uint64_t books, books_refused, ended, leaked, unobserved_exits;
	uint64_t exits_waiting,
		exits_waiting_bytes; /* books of exited processes that are still held */
	uint64_t legacy_connections, legacy_messages, legacy_refused;
	uint64_t legacy_taken_over, legacy_in_doubt;
	uint64_t incidents[TYPES_INCIDENTS]; /* since start, indexed by kind */
	uint64_t start_ns;                   /* CLOCK_REALTIME of the daemon's start */
	struct last_hour_change hour;
	uint64_t lines_dropped;
	uint64_t legacy_bytes;      /* memory of old clients' books */
	uint64_t limits[QUOTA_IDS]; /* what was refused, dropped or cut since the start */
	struct health_flight flight;
	bool has_fleet; /* other machines to show */
	bool pushes;    /* to a collector; these are then set: */
	uint64_t push_sent, push_failed, push_partial, push_queued;
	struct snapshot_recording
		recording;            /* that is served instead of a machine; borrowed text */
	const char *http;             /* where it is served, NULL = nowhere; borrowed */
	const char *version, *socket; /* borrowed */
	struct health_door doors[HEALTH_DOORS];

	/*
	 * The counters of exited processes: tally_add_process() once for each, but only after it
	 * has left the list of tracked books. Health is read before the snapshot it is shown with,
	 * so that nothing is counted twice; a process that is briefly in neither does not show,
	 * because counters never decrease.
	 */
	struct tally past;
};
