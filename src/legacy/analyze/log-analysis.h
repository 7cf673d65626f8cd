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

#define LOG_ANALYSIS_NONE UINT32_MAX

/* Types, and one for what the log does not say. */
#define LOG_ANALYSIS_TYPES (BOOK_TYPES + 1)

#define LOG_ANALYSIS_DEVICES (LOG_READER_FORMATS * BOOK_DEVICES)

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
	LOG_ANALYSIS_CAUSES,
};

struct log_analysis_leak {
	uint64_t address, size;
	uint64_t line;
	uint32_t process; /* number of a row */
	uint32_t site;    /* number of a row, or LOG_ANALYSIS_NONE */
	uint32_t refs;
	uint32_t device;
	uint32_t file;
	uint32_t type, format, how;
};

struct log_analysis_finding {
	uint64_t address;
	uint64_t size, other_size; /* as allocated, 0 = not known; of a size change: the new one */
	uint64_t count;
	uint64_t line, last_line; /* the first time and the last */
	uint32_t file, last_file;
	uint32_t process;
	uint32_t device;
	uint32_t type, format, kind, cause;
};

struct log_analysis_site {
	const char *stack; /* lines */
	uint64_t allocs, frees;
	uint64_t replaced; /* allocated again at the same place, without a free */
	uint64_t bytes;    /* allocated in all */
	uint64_t leaks, leaked_bytes;
	uint32_t type, format;
};

/* Of one format, device and type. */
struct log_analysis_sum {
	uint64_t allocs, frees, bytes;
	uint64_t live, live_bytes, peak_bytes;
	uint64_t leaks, leaked_bytes;
	uint64_t found[LOG_ANALYSIS_KINDS];
	uint64_t reuses;      /* allocations of an address that had been freed */
	uint64_t early_frees; /* of buffers that the server knew and this log does not */
	uint64_t hooked;
	uint32_t type; /* the last member: all before it is counted */
};

struct log_analysis_process {
	uint64_t allocs, frees;
	uint64_t leaks, leaked_bytes;
	uint64_t found[LOG_ANALYSIS_KINDS];
	uint64_t ended_live; /* removed at its end, until the log says how many there were */
	uint32_t pid;
	uint32_t format;
	bool has_pid;
	bool has_ended;
	bool has_frees; /* its format records them */
	uint32_t live;  /* its nodes, newest first */
};

struct log_analysis_device {
	struct log_analysis_sum sums[LOG_ANALYSIS_TYPES];
	uint64_t hooked_frees;
	uint32_t format, number;
	bool has_frees;
};

struct log_analysis;

/*
 * What is there to read once it is finished; the reader may change it. Rows of leaks: largest first; of findings:
 * most serious first.
 */
struct log_analysis_result {
	struct log_analysis_leak *leaks;
	size_t leak_count;
	struct log_analysis_finding *findings;
	size_t finding_count;
	struct log_analysis_site *sites;
	size_t site_count;
	const struct log_analysis_process *processes;
	size_t process_count;
	struct log_analysis_device *const *devices; /* of each format and device; NULL = none */
	uint64_t rejected, restarts;
	uint64_t merged; /* references of one process to another's buffer, as old servers counted */
	uint64_t unseen; /* buffers of ended processes that were allocated before the log */
	uint64_t dropped; /* leaks and findings that have no row */
	bool is_exact;
};

/* 0 or -ENOMEM. */
int log_analysis_new(struct log_analysis **ret_analysis);
struct log_analysis *log_analysis_free(struct log_analysis *analysis);

/* Which file the next events are from, and which device alone counts (LOG_ANALYSIS_NONE = all). */
void log_analysis_set_file(struct log_analysis *analysis, uint32_t file);
void log_analysis_only_device(struct log_analysis *analysis, uint32_t device);

/* A log_reader_take, with the analysis as its context. 0 or -ENOMEM. */
int log_analysis_take(void *context, const struct log_reader_event *event);

/* After the last event. @ret_result lives as long as the analysis. 0 or -ENOMEM. */
int log_analysis_finish(struct log_analysis *analysis, struct log_analysis_result *ret_result);

/* NULL: there is no such number. */
const char *log_analysis_how_name(uint32_t how);     /* "end_of_log" */
const char *log_analysis_kind_name(uint32_t kind);   /* "double_free" */
const char *log_analysis_cause_name(uint32_t cause); /* "address_reuse" */
