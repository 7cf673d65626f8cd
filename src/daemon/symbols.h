/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames of a stack. The files are opened here, by a thread that may as well be stuck
 * for ever (a file may lie on a file system that does not answer), and looked into by a process that
 * may be lost at any time. So whoever asks always gets an answer within the time it gave, if only "not
 * known".
 *
 * A process serves one user: what somebody's files did to it is never there for somebody else's. It is
 * ended when it has not answered in time, when it has served many questions, and when there have been none
 * for a while.
 */

#include <stddef.h>
#include <stdint.h>

#include "symbol/resolve.h"

#define SYMBOLS_TIMEOUT_MS 2000  /* for one question; then the process is killed */
#define SYMBOLS_IDLE_S 60u       /* then it is ended */
#define SYMBOLS_SERVED_MAX 256u  /* questions to one process */
#define SYMBOLS_STARTS_MAX 32u   /* of processes... */
#define SYMBOLS_STARTS_S 10u     /* ...in such a time */
#define SYMBOLS_WAITING_MAX 256u /* questions; more are refused */

struct symbols;

struct symbols_config {
	const char *debug_folder; /* NULL = /usr/lib/debug */
	const char *program;      /* NULL = this one; for tests */
	uint32_t timeout_ms;      /* 0 = SYMBOLS_TIMEOUT_MS; likewise the next */
	uint32_t idle_s;
};

/* A file that a process had loaded. */
struct symbols_module {
	const char *path;         /* as that process saw it */
	uint32_t pid;             /* whose root the path begins at; 0 = ours */
	uint32_t user;            /* who must be able to read it */
	uint64_t book;            /* for which it is remembered; 0 = for none */
	uint64_t base;            /* where that process has it; 0 = not known */
	uint32_t build_id_length; /* 0 = not known */
	uint8_t build_id[RESOLVE_BUILD_ID_MAX];
};

struct symbols_answer {
	size_t count;                                    /* never 0 */
	struct resolve_frame frames[RESOLVE_FRAMES_MAX]; /* innermost first; any bytes */
};

struct symbols_counts {
	uint64_t asked;
	uint64_t cached;  /* of those: answered from memory */
	uint64_t started; /* processes */
	uint64_t lost;    /* of those: killed for their silence, or ended by what they read */
};

/* 0 or a negative errno. No process is started before the first question. */
int symbols_new(struct symbols **ret_symbols, const struct symbols_config *config);
struct symbols *symbols_free(struct symbols *symbols);

/*
 * What is at @address of a module, counted as its file does. Waits @timeout_ms at most. From any thread but
 * the loop's. 0; -ENOENT if it is not known; -ETIMEDOUT; -EBUSY if too much is waiting, or too many
 * processes were lost; or another negative errno: the file cannot be read.
 */
int symbols_resolve(struct symbols *symbols, const struct symbols_module *module, uint64_t address,
		    int timeout_ms, struct symbols_answer *ret_answer);

/*
 * What symbols_resolve() has said before for this book. Never waits. 0; -ENOENT if it said that nothing is
 * known; -EAGAIN if it was not asked, or that is forgotten.
 */
int symbols_recall(struct symbols *symbols, const struct symbols_module *module, uint64_t address,
		   struct symbols_answer *ret_answer);

void symbols_counts(struct symbols *symbols, struct symbols_counts *ret_counts);
