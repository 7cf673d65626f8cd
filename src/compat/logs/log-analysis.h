/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the events of old logs add up to: what was left, freed twice, freed without being known, and why.
 *
 * The old scripts looked at addresses only. An address is used again and again, on many devices and by many
 * processes, so the key here is (format, process, device, address), and the type where the log tells it; a
 * life begins with an allocation and ends with its last free. Formats are kept apart: two logs of one run
 * tell the same events twice.
 *
 * Memory: one node for each live buffer, one for each of the last ANALYSIS_FREED_MAX that were freed (so
 * that a second free is known as one), one row for each call site, process and finding. Each has a
 * maximum; what is beyond it is still counted, and the result says that it is not exact.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compat/logs/log-reader.h"

#define ANALYSIS_LIVE_MAX (1u << 24)
#define ANALYSIS_FREED_MAX (1u << 18)
#define ANALYSIS_LEAKS_MAX (1u << 20)
#define ANALYSIS_FINDINGS_MAX (1u << 16)
#define ANALYSIS_SITES_MAX (1u << 14)
#define ANALYSIS_TEXT_MAX (64u << 20) /* bytes of all stacks */
#define ANALYSIS_PROCESSES_MAX (1u << 16)
#define ANALYSIS_ELSEWHERE 64u /* devices, and processes, that an unknown free is compared with */

#define ANALYSIS_NONE UINT32_MAX

/* Types, and one for what the log does not tell. */
#define ANALYSIS_TYPES (BOOK_TYPES + 1)

enum analysis_how {
	ANALYSIS_END_OF_LOG = 0,    /* alive when the log ends; its process may still use it */
	ANALYSIS_PROCESS_ENDED = 1, /* its process ended before it was freed */
};

enum analysis_kind {
	ANALYSIS_DOUBLE_FREE = 0,
	ANALYSIS_UNKNOWN_FREE = 1,
	ANALYSIS_SIZE_CHANGE = 2,
	ANALYSIS_KINDS = 3,
};

enum analysis_cause {
	/* of double frees */
	ANALYSIS_FREED_BEFORE,  /* allocated once, freed twice */
	ANALYSIS_ADDRESS_REUSE, /* the address had several lives: an old owner freed it again */
	/* of unknown frees */
	ANALYSIS_BEFORE_LOG,    /* never seen: allocated before the log began, or never at all */
	ANALYSIS_LONG_AGO,      /* likewise, or so long ago that it is forgotten here */
	ANALYSIS_RESTART,       /* a good free; the server did not know the buffer any more */
	ANALYSIS_OWNER_ENDED,   /* its process was taken for dead, and the buffer removed */
	ANALYSIS_OTHER_TYPE,    /* something of another type lives there */
	ANALYSIS_OTHER_DEVICE,  /* that address lives on another device */
	ANALYSIS_OTHER_PROCESS, /* another process has it */
	/* of size changes */
	ANALYSIS_WHILE_LIVE, /* allocated again while alive: a free is missing in between */
	ANALYSIS_AT_FREE,    /* freed with another size than allocated */
	ANALYSIS_CAUSES,
};

struct analysis_leak {
	uint64_t address, size;
	uint64_t line;
	uint32_t process; /* number of a row */
	uint32_t site;    /* number of a row, or ANALYSIS_NONE */
	uint32_t refs;
	uint32_t device;
	uint32_t file;
	uint8_t type, format, how;
};

struct analysis_finding {
	uint64_t address;
	uint64_t size, other_size; /* as allocated, 0 = not known; of a size change: the new one */
	uint64_t count;
	uint64_t line, last_line; /* the first time and the last */
	uint32_t file, last_file;
	uint32_t process;
	uint32_t device;
	uint8_t type, format, kind, cause;
};

struct analysis_site {
	const char *stack; /* lines */
	uint64_t allocs, frees;
	uint64_t replaced; /* allocated again at the same place, without a free */
	uint64_t bytes;    /* allocated in all */
	uint64_t leaks, leaked_bytes;
	uint32_t type, format;
};

/* Of one format, device and type. */
struct analysis_sum {
	uint64_t allocs, frees, bytes;
	uint64_t live, live_bytes, peak_bytes;
	uint64_t leaks, leaked_bytes;
	uint64_t found[ANALYSIS_KINDS];
	uint64_t reuses;      /* allocations of an address that had been freed */
	uint64_t early_frees; /* of buffers that the server knew and this log does not */
	uint64_t hooked;
};

struct analysis_process {
	uint64_t allocs, frees;
	uint64_t leaks, leaked_bytes;
	uint64_t found[ANALYSIS_KINDS];
	uint64_t ended_live; /* taken from it at its end, until it is told how many there were */
	uint32_t pid;
	uint32_t format;
	bool has_pid;
	bool has_ended;
	uint32_t live; /* its nodes, newest first */
};

struct analysis_device {
	struct analysis_sum sums[ANALYSIS_TYPES];
	uint64_t hooked_frees;
};

struct analysis;

/* What is there to read once it is finished. Rows of leaks: largest first; of findings: most serious first. */
struct analysis_result {
	const struct analysis_leak *leaks;
	size_t leak_count;
	const struct analysis_finding *findings;
	size_t finding_count;
	const struct analysis_site *sites;
	size_t site_count;
	const struct analysis_process *processes;
	size_t process_count;
	struct analysis_device *const (*devices)[BOOK_DEVICES]; /* [format][device], NULL = none */
	uint64_t rejected, restarts;
	uint64_t merged; /* references of one process to another's buffer, as old servers counted */
	uint64_t unseen; /* buffers of ended processes that were allocated before the log */
	uint64_t dropped; /* leaks and findings that have no row */
	bool is_exact;
};

/* 0 or -ENOMEM. */
int analysis_new(struct analysis **ret_analysis);
struct analysis *analysis_free(struct analysis *analysis);

/* Which file the next events are from, and which device alone counts (ANALYSIS_NONE = all). */
void analysis_set_file(struct analysis *analysis, uint32_t file);
void analysis_only_device(struct analysis *analysis, uint32_t device);

/* A logread_take, with the analysis as its context. 0 or -ENOMEM. */
int analysis_take(void *context, const struct logread_event *event);

/* After the last event. @ret_result lives as long as the analysis. 0 or -ENOMEM. */
int analysis_finish(struct analysis *analysis, struct analysis_result *ret_result);

const char *analysis_kind_name(enum analysis_kind kind);    /* "double_free" */
const char *analysis_cause_name(enum analysis_cause cause); /* "address_reuse" */
