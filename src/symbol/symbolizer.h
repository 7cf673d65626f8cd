/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for addresses in files that a process had loaded. The files are opened here and read by a
 * process without privileges, which can be lost at any time; its answers are cached. A process
 * serves one user, so that one user's files cannot affect the answers for another. It is ended when
 * it does not answer in time, and after a number of requests.
 *
 * For one thread, which waits for the answers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/process-id.h"
#include "symbol/resolve.h"

#define SYMBOLIZER_TIMEOUT_MS 2000 /* for one request; then the process is killed */
#define SYMBOLIZER_SERVED_MAX 256u /* requests to one process */
#define SYMBOLIZER_STARTS_MAX 32u  /* process starts... */
#define SYMBOLIZER_STARTS_S 10u    /* ...in this period */
#define SYMBOLIZER_PROCESSES_MAX 16u
#define SYMBOLIZER_FILES 4u /* that a process keeps open; see JAIL_FILES */
#define SYMBOLIZER_SHARED_BYTES \
	(256ull << 20)         /* of files in one process, if another may be started */
#define SYMBOLIZER_PAIRS 64u   /* modules whose debug files stay open */
#define SYMBOLIZER_BAD_MAX 64u /* files that made us lose a process */
#define SYMBOLIZER_BAD_S 60u   /* how long they are not tried again */
#define SYMBOLIZER_BAD_USER 4u /* with this many, none of the user's files are tried */

struct symbolizer;

struct symbolizer_module;

/* Gets debug information from elsewhere, for a module with a build id. */
struct symbolizer_fetcher {
	/* 0 and a file that the caller owns, or a negative errno: it is not asked for again. */
	int (*fetch)(struct symbolizer_fetcher *fetcher, const struct symbolizer_module *module,
		     int *ret_fd);
};

/* Has files of processes that may have ended. */
struct symbolizer_holder {
	/* 0 and a file opened with O_PATH, which the caller owns; or a negative errno. */
	int (*find)(struct symbolizer_holder *holder, const struct symbolizer_module *module,
		    int *ret_fd);
};

struct symbolizer_config {
	const char *debug_folder; /* NULL = /usr/lib/debug */
	const char *program;      /* NULL = the running one; for tests */
	uint32_t timeout_ms;      /* 0 = SYMBOLIZER_TIMEOUT_MS */
	int stop_fd;              /* borrowed: readable when waiting must stop; -1 = none */
	uint32_t processes;       /* at most, at one time; 0 = 1 */
	uint32_t served_max;      /* 0 = SYMBOLIZER_SERVED_MAX */
	uint32_t bad_user;        /* 0 = SYMBOLIZER_BAD_USER */
	bool own_rights;          /* not only files the user may read, but all that we may read */
	bool keeps_files;         /* opened ones for a moment: for a command, which ends soon */
	struct symbolizer_fetcher
		*fetcher; /* NULL = only look for debug information on this machine */
	struct symbolizer_holder *holder; /* NULL = none */
};

/* A file that a process had loaded. */
struct symbolizer_module {
	const char *path; /* as seen by that process */
	/* The path is below its root; pid 0 = below ours. Without its start what it has mapped is not known. */
	struct process_id process;
	uint32_t user;            /* must be able to read the file, and to reach it */
	uint64_t book;            /* to store the answer under; 0 = none */
	uint64_t base;            /* load address in that process; 0 = not known */
	bool only_held;           /* the path leads to another file now */
	uint32_t build_id_length; /* 0 = not known */
	uint8_t build_id[RESOLVE_BUILD_ID_MAX];
};

struct symbolizer_answer {
	size_t count;                                    /* never 0 */
	struct resolve_frame frames[RESOLVE_FRAMES_MAX]; /* innermost first; arbitrary bytes */
};

struct symbolizer_counts {
	uint64_t cached;  /* requests answered from the cache */
	uint64_t started; /* processes started */
	uint64_t lost;    /* of those: timed out or crashed */
};

/* 0 or a negative errno. No process is started before the first request. */
int symbolizer_new(struct symbolizer **ret_symbolizer, const struct symbolizer_config *config);
struct symbolizer *symbolizer_free(struct symbolizer *symbolizer);

/*
 * Looks up @address, an address as in the module's file. 0; -ENOENT if it has no name; -ETIMEDOUT;
 * -EBUSY if too many processes were lost; -ECANCELED: told to stop; or another negative errno: the
 * file cannot be read.
 */
int symbolizer_find(struct symbolizer *symbolizer, const struct symbolizer_module *module,
		    uint64_t address, struct symbolizer_answer *ret_answer);

/*
 * Demangles @name, of at most DEMANGLE_NAME_MAX - 1 bytes, into DEMANGLE_NAME_MAX bytes. Names that
 * are not C++ are copied. 0 or a negative errno as above.
 */
int symbolizer_demangle(struct symbolizer *symbolizer, const char *name, char *ret_text);

/* Ends the processes and closes the files; keeps the cache. */
void symbolizer_rest(struct symbolizer *symbolizer);

/* Any thread may call this. */
void symbolizer_counts(const struct symbolizer *symbolizer, struct symbolizer_counts *ret_counts);
