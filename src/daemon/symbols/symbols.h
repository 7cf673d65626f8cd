/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names for the native frames of a stack. A separate thread opens the files, because it may block
 * forever on a file system that does not answer. So a caller always gets an answer within its
 * time-out, if only "unknown".
 */

#include <stddef.h>
#include <stdint.h>

#include "symbol/symbolizer.h"

#define SYMBOLS_IDLE_S 60u       /* then the symbolizer process is ended */
#define SYMBOLS_WAITING_MAX 256u /* queries; more are refused */

struct symbols;
struct symbols_files_owner;

struct symbols_config {
	struct symbolizer_config symbolizer; /* except its stop_fd and its holder */
	uint32_t idle_s;                     /* 0 = SYMBOLS_IDLE_S */
};

struct symbols_counts {
	uint64_t asked;
	uint64_t cached;  /* of those: answered from the cache */
	uint64_t started; /* symbolizer processes */
	uint64_t lost;    /* of those: killed because they hung, or crashed on a file */
	uint64_t held;    /* files that are held open at present */
};

/* 0 or a negative errno. No process is started before the first query. */
int symbols_new(struct symbols **ret_symbols, const struct symbols_config *config);
struct symbols *symbols_free(struct symbols *symbols);

/*
 * Resolves @address of a module, as an address within its file. Waits at most @timeout_ms. From any
 * thread but the loop's. 0; -ENOENT if the name is unknown; -ETIMEDOUT; -EBUSY if the queue is full
 * or too many processes were lost; or another negative errno: the file cannot be read.
 */
int symbols_resolve(struct symbols *symbols, const struct symbolizer_module *module,
		    uint64_t address, int timeout_ms, struct symbolizer_answer *ret_answer);

/*
 * Returns what symbols_resolve() found before for this book. Never waits. 0; -ENOENT if the name
 * was unknown; -EAGAIN if there was no query or its result was evicted.
 */
int symbols_recall(struct symbols *symbols, const struct symbolizer_module *module,
		   uint64_t address, struct symbolizer_answer *ret_answer);

/*
 * A process has a book: holds its files open, as symbols-files.h tells, until the book is released.
 * Neither waits.
 */
void symbols_hold(struct symbols *symbols, const struct symbols_files_owner *owner);

/* Holds a file that the process itself has sent. */
void symbols_hold_consume(struct symbols *symbols, const struct symbols_files_owner *owner, int fd);
void symbols_release(struct symbols *symbols, uint64_t book);

void symbols_counts(struct symbols *symbols, struct symbols_counts *ret_counts);
