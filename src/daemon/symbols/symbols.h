/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames of a stack. The files are opened by a thread that may as well be stuck for
 * ever (a file may lie on a file system that does not answer). So whoever asks always gets an answer within
 * the time it gave, if only "not known".
 */

#include <stddef.h>
#include <stdint.h>

#include "symbol/symbolizer.h"

#define SYMBOLS_IDLE_S 60u       /* then the process is ended */
#define SYMBOLS_WAITING_MAX 256u /* questions; more are refused */

struct symbols;

struct symbols_config {
	struct symbolizer_config symbolizer; /* all but what tells it to stop */
	uint32_t idle_s;                     /* 0 = SYMBOLS_IDLE_S */
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
int symbols_resolve(struct symbols *symbols, const struct symbolizer_module *module,
		    uint64_t address, int timeout_ms, struct symbolizer_answer *ret_answer);

/*
 * What symbols_resolve() has said before for this book. Never waits. 0; -ENOENT if it said that nothing is
 * known; -EAGAIN if it was not asked, or that is forgotten.
 */
int symbols_recall(struct symbols *symbols, const struct symbolizer_module *module,
		   uint64_t address, struct symbolizer_answer *ret_answer);

void symbols_counts(struct symbols *symbols, struct symbols_counts *ret_counts);
