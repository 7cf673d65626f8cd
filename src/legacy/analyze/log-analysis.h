/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the events of old logs add up to: what leaked, was freed twice or freed without being known,
 * and why.
 *
 * The old scripts looked at addresses only. Addresses are reused, on many devices and by many
 * processes, so the key here is (format, process, device, address), plus the type where the log has
 * it; a lifetime begins with an allocation and ends with the last free. Formats are kept apart: two
 * logs of one run contain the same events twice.
 *
 * Memory: one node for each live buffer, one for each of the last LOG_ANALYSIS_FREED_MAX freed ones
 * (so that a second free is recognized), one row for each call site, process and finding. Each has
 * a maximum; what exceeds it is still counted, and the result says that it is not exact.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/map.h"
#include "base/pool.h"
#include "legacy/analyze/log-reader.h"

#define LOG_ANALYSIS_LIVE_MAX (1u << 24)
#define LOG_ANALYSIS_FREED_MAX (1u << 18)
#define LOG_ANALYSIS_LEAKS_MAX (1u << 20)
#define LOG_ANALYSIS_FINDINGS_MAX (1u << 16)
#define LOG_ANALYSIS_SITES_MAX (1u << 14)
#define LOG_ANALYSIS_TEXT_MAX (64u << 20) /* bytes of all stacks */
#define LOG_ANALYSIS_PROCESSES_MAX (1u << 16)
#define LOG_ANALYSIS_ELSEWHERE \
	64u /* devices, and processes, that an unknown free is compared with */

/* Types, and one for what the log does not say. */
#define LOG_ANALYSIS_TYPES (BOOK_TYPES + 1)

enum log_analysis_how {
	LOG_ANALYSIS_END_OF_LOG = 0,    /* alive when the log ends; its process may still use it */
	LOG_ANALYSIS_PROCESS_ENDED = 1, /* its process ended before it was freed */
};

enum log_analysis_kind {
	LOG_ANALYSIS_DOUBLE_FREE = 0,
	LOG_ANALYSIS_UNKNOWN_FREE = 1,
	LOG_ANALYSIS_SIZE_CHANGE = 2,
	LOG_ANALYSIS_KINDS = 3,
};

enum log_analysis_cause {
	/* of double frees */
	LOG_ANALYSIS_FREED_BEFORE,  /* allocated once, freed twice */
	LOG_ANALYSIS_ADDRESS_REUSE, /* the address had several lives: an old owner freed it again */
	/* of unknown frees */
	LOG_ANALYSIS_BEFORE_LOG,   /* never seen: allocated before the log began, or never at all */
	LOG_ANALYSIS_LONG_AGO,     /* likewise, or so long ago that it is forgotten here */
	LOG_ANALYSIS_RESTART,      /* a valid free; the server no longer knew the buffer */
	LOG_ANALYSIS_OWNER_ENDED,  /* its process was taken for dead, and the buffer removed */
	LOG_ANALYSIS_OTHER_TYPE,   /* something of another type lives there */
	LOG_ANALYSIS_OTHER_DEVICE, /* that address lives on another device */
	LOG_ANALYSIS_OTHER_PROCESS, /* another process has it */
	/* of size changes */
	LOG_ANALYSIS_WHILE_LIVE, /* allocated again while alive: a free is missing in between */
	LOG_ANALYSIS_AT_FREE,    /* freed with another size than allocated */
	/* of all */
	LOG_ANALYSIS_REPORTED, /* the log has only ttmemd's report of it */
	LOG_ANALYSIS_CAUSES,
};

/* Of a device's type, a process, a call site or everything. */
struct log_analysis_sum {
	uint64_t allocs, frees;
	uint64_t bytes;    /* allocated in all */
	uint64_t replaced; /* allocated again at the same place, without a free */
	uint64_t live, live_bytes, peak_bytes;
	uint64_t leaks, leaked_bytes;
	uint64_t found[LOG_ANALYSIS_KINDS];
	uint64_t reuses;      /* allocations of an address that had been freed */
	uint64_t early_frees; /* of buffers that the server knew and this log does not */
	uint64_t hooked;
	uint32_t type; /* the last member: all before it is counted */
};

struct log_analysis_site {
	const char *stack; /* lines; NULL: the log has none */
	uint32_t number, format;
	struct log_analysis_sum sum;
};

TAILQ_HEAD(log_analysis_nodes, log_analysis_node);

struct log_analysis_process {
	struct log_analysis_sum sum;
	uint32_t pid, format;
	bool has_pid;
	bool has_ended;
	bool has_frees; /* its format records them */

	/* Private. */
	uint32_t number;
	struct log_analysis_nodes live; /* newest first */
	uint32_t life;                  /* the pid may be used again */
	uint64_t ended;                 /* buffers that it had at its end, and that the log has */
	uint64_t missing;               /* and that it has not; and those of earlier lives */
	uint64_t missing_before;
	bool is_listed;  /* what it had was listed, as far as there was room */
	bool has_events; /* the log has lines of them, not only reports */
};

struct log_analysis_leak {
	const struct log_analysis_process *process;
	const struct log_analysis_site *site;
	const char *path;
	uint64_t address, size;
	uint64_t line;
	uint32_t file; /* whose path that is */
	uint32_t refs, device, type, format, how;
	bool is_listed; /* the line is that of a list of what was left, not of the allocation */
};

struct log_analysis_finding {
	const struct log_analysis_process *process;
	const char *path, *last_path;
	uint64_t address;
	uint64_t size, other_size; /* as allocated, 0 = not known; of a size change: the new one */
	uint64_t count;
	uint64_t line, last_line; /* the first time and the last */
	uint32_t file;
	uint32_t device, type, format, kind, cause;
};

struct log_analysis_device {
	struct log_analysis_sum sums[LOG_ANALYSIS_TYPES];
	uint64_t hooked_frees;
	uint32_t format, number;
	bool has_frees;
};

struct log_analysis {
	/* The caller's: of the next events, and what counts at all. */
	char *const *paths; /* of all files */
	uint32_t file;
	bool has_only_device;
	uint32_t only_device;

	/* What there is to read once it is finished. Leaks: largest first; findings: most serious first. */
	struct log_analysis_leak *leaks;
	struct log_analysis_finding *findings;
	struct log_analysis_site **sites;
	struct log_analysis_process **processes;
	size_t leak_count, finding_count, site_count, process_count;
	struct log_analysis_device *devices[LOG_READER_FORMATS * BOOK_DEVICES]; /* NULL = none */
	struct pool texts;
	uint64_t rejected, restarts;
	uint64_t merged; /* references of one process to another's buffer, as old servers counted */
	uint64_t unseen; /* buffers of ended processes of which the log has no line */
	uint64_t unlisted; /* of those: left out of a list */
	uint64_t dropped;  /* leaks and findings that have no row */
	bool is_inexact;   /* something has no row */

	/* Private. */
	struct log_analysis_finding *reports;
	size_t report_count, report_capacity;
	size_t leak_capacity, finding_capacity, site_capacity, process_capacity;
	struct map process_numbers, site_numbers;
	struct map finding_places, finding_sizes, finding_numbers;
	size_t text_bytes; /* in there */
	struct log_analysis_site no_site;
	uint32_t seen_devices[LOG_ANALYSIS_ELSEWHERE]; /* the first of them, all formats */
	size_t seen_device_count;
	void *places; /* tree of nodes; see tsearch() */
	struct log_analysis_nodes freed;
	size_t live_count, freed_count;
	uint64_t forgotten;                   /* freed ones */
	struct log_analysis_process *leaving; /* what it has left is being listed */
};

/* @paths: of the files; stay the caller's. */
struct log_analysis *log_analysis_new(char *const *paths);
struct log_analysis *log_analysis_free(struct log_analysis *analysis);

/* A log_reader_take, with the analysis as its context. */
void log_analysis_take(void *context, const struct log_reader_event *event);

/* After the last event. */
void log_analysis_finish(struct log_analysis *analysis);

/* NULL: there is no such number. */
const char *log_analysis_how_name(uint32_t how);     /* "end_of_log" */
const char *log_analysis_kind_name(uint32_t kind);   /* "double_free" */
const char *log_analysis_cause_name(uint32_t cause); /* "address_reuse" */
