/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for addresses in files that a process had loaded. The files are opened here and looked into by a
 * process without rights, which may be lost at any time; what it said is remembered. A process serves one
 * user: what somebody's files did to it is never there for somebody else's. It is ended when it has
 * not answered in time, and when it has served many questions.
 *
 * For one thread, which waits for the answers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/resolve.h"

#define SYMBOLIZER_TIMEOUT_MS 2000 /* for one question; then the process is killed */
#define SYMBOLIZER_SERVED_MAX 256u /* questions to one process */
#define SYMBOLIZER_STARTS_MAX 32u  /* of processes... */
#define SYMBOLIZER_STARTS_S 10u    /* ...in such a time */
#define SYMBOLIZER_PROCESSES_MAX 16u
#define SYMBOLIZER_FILES 4u /* that a process keeps open; see JAIL_FILES */
#define SYMBOLIZER_SHARED_BYTES \
	(256ull << 20)         /* of files in one process, if there may be another */
#define SYMBOLIZER_PAIRS 64u   /* files whose debug information stays open */
#define SYMBOLIZER_BAD_MAX 64u /* files that cost us a process */
#define SYMBOLIZER_BAD_S 60u   /* for so long they are not tried again */
#define SYMBOLIZER_BAD_USER 4u /* so many of them, and their user's are not tried either */

struct symbolizer;

struct symbolizer_module;

/* Debug information from elsewhere, for a module with a build id. */
struct symbolizer_fetcher {
	/* 0 and a file that becomes the caller's, or a negative errno: not to be asked for again. */
	int (*fetch)(struct symbolizer_fetcher *fetcher, const struct symbolizer_module *module,
		     int *ret_fd);
};

struct symbolizer_config {
	const char *debug_folder; /* NULL = /usr/lib/debug */
	const char *program;      /* NULL = this one; for tests */
	uint32_t timeout_ms;      /* 0 = SYMBOLIZER_TIMEOUT_MS */
	int stop_fd;         /* the owner's: readable when nothing is to be waited for; -1 = none */
	uint32_t processes;  /* at once; 0 = 1 */
	uint32_t served_max; /* 0 = SYMBOLIZER_SERVED_MAX */
	uint32_t bad_user;   /* 0 = SYMBOLIZER_BAD_USER */
	bool own_rights;     /* files that we may read, else only those that the user may */
	struct symbolizer_fetcher
		*fetcher; /* NULL = debug information is on this machine or nowhere */
};

/* A file that a process had loaded. */
struct symbolizer_module {
	const char *path;         /* as that process saw it */
	uint32_t pid;             /* whose root the path begins at; 0 = ours */
	uint32_t user;            /* who must be able to read it */
	uint64_t book;            /* for which it is remembered; 0 = for none */
	uint64_t base;            /* where that process has it; 0 = not known */
	uint32_t build_id_length; /* 0 = not known */
	uint8_t build_id[RESOLVE_BUILD_ID_MAX];
};

struct symbolizer_answer {
	size_t count;                                    /* never 0 */
	struct resolve_frame frames[RESOLVE_FRAMES_MAX]; /* innermost first; any bytes */
};

struct symbolizer_counts {
	uint64_t cached;  /* questions answered from memory */
	uint64_t started; /* processes */
	uint64_t lost;    /* of those: killed for their silence, or ended by what they read */
};

/* 0 or a negative errno. No process is started before the first question. */
int symbolizer_new(struct symbolizer **ret_symbolizer, const struct symbolizer_config *config);
struct symbolizer *symbolizer_free(struct symbolizer *symbolizer);

/*
 * What is at @address of a module, counted as its file does. 0; -ENOENT if it is not known; -ETIMEDOUT;
 * -EBUSY if too many processes were lost; -ECANCELED: stopped; or another negative errno: the file cannot
 * be read.
 */
int symbolizer_find(struct symbolizer *symbolizer, const struct symbolizer_module *module,
		    uint64_t address, struct symbolizer_answer *ret_answer);

/*
 * @name of at most DEMANGLE_NAME_MAX - 1 bytes as people wrote it, in as much room with the NUL. One that is
 * none of C++'s stays as it is. 0 or a negative errno as above.
 */
int symbolizer_demangle(struct symbolizer *symbolizer, const char *name, char *ret_text);

/* Lets go of all but what is known. */
void symbolizer_rest(struct symbolizer *symbolizer);

/* From any thread. */
void symbolizer_counts(const struct symbolizer *symbolizer, struct symbolizer_counts *ret_counts);
