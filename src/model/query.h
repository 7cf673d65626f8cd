/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is asked of the recorded past, and by whom. Whoever serves requests fills these in from a
 * URL; whoever has the past answers them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/filter.h"
#include "model/sites/group.h"

struct access_peer;

/*
 * A client of the daemon's own socket, as the kernel reports it; or a browser over TCP that is signed
 * in with the rights of one (web/server/sessions.h).
 */
struct query_asker {
	const struct access_peer *peer; /* for whoever knows what that may see; borrowed */
	size_t peer_size;               /* in bytes, for a copy */
	uint32_t user_id;               /* as the daemon's user namespace has it */
	bool is_stranger;               /* that number is nobody's: nothing is its own */
	bool sees_all;                  /* else only details of its own processes */
	bool is_tcp;                    /* a browser */
	const char *user;               /* then its user's name, for people; else NULL */
	uint64_t came_ns;               /* CLOCK_MONOTONIC: when the request arrived */
};

/* What was live at peaks. */
struct query_peaks {
	const struct query_asker *asker; /* NULL = over TCP, with the token: sees all */
	struct filter filter;
	enum group_kind by;
};

/* Call sites that keep growing. */
struct query_growth {
	const struct query_asker *asker; /* as above */
	uint32_t pid;                    /* 0 = any */
	uint64_t at_ns;                  /* a moment of a recording; 0 = now, or its end */
};

/* Command lines of living processes. */
struct query_commands {
	const struct query_asker *asker; /* as above */
	uint32_t pid;                    /* 0 = any */
};

/* A page of history. */
struct query_past {
	const struct query_asker *asker; /* NULL = over TCP, with the token: sees all */
	uint32_t pid;                    /* 0 = any */
	const char *kind;                /* of incidents; NULL = any */
	bool has_buffers_max;            /* leaks with at most so many buffers of each: */
	uint32_t buffers_max;
	uint64_t since_ns; /* 0 = everything */
	size_t limit;
	const char *cursor; /* "next" of an earlier page, NULL = first page */
};

struct query_history {
	const struct query_asker *asker; /* as above */
	bool only_past;                  /* no live processes */
	uint64_t address;
	struct filter filter;
};

/* What happened, and when; written as {"schema":"ttmem.moments/1", ...}. */
struct query_moments {
	const struct query_asker *asker; /* NULL = over TCP */
	bool sees_all;                   /* names of everybody; else of what the asker may see */
	uint64_t from_ns, to_ns;         /* 0 = 15 minutes ago, now */
	uint32_t pid;                    /* 0 = any */
	struct filter filter;            /* devices */
	size_t limit;
};

/* Time series; written as {"schema":"ttmem.series/1", ...}. */
struct query_series {
	const struct query_asker *asker; /* as above; series are public */
	uint64_t from_ns, to_ns;         /* 0 = 15 minutes ago, now */
	uint32_t step_ms;     /* 10, 100 (of a recording), 1000, 10000, 60000; 0 = automatic */
	uint32_t pid;         /* 0 = whole devices */
	struct filter filter; /* devices and type */
	size_t limit;
	const char *cursor;
};
