/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small process that holds the books while the daemon is down, for a daemon that was started by
 * hand (systemd has its fd store). The book of a process that exits is lost unless somebody holds
 * it: the keeper does, outlives the daemon however that ends, and gives all books to the next one.
 * It holds and never reads.
 *
 * The daemon's side is below: it finds a keeper at a socket or starts one, passes it each book, and
 * starts another if it is gone or stuck. Nothing waits for a keeper but keeper_take() at the start
 * and keeper_free() at the end. The caller owns the daemon's own socket already, so that there is
 * one daemon for one path. Lives in the loop's thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/book-id.h"
#include "base/process-id.h"

struct keeper;
struct loop;

#define KEEPER_BOOKS_MAX 8192u /* more are refused by the keeper, and counted there */
#define KEEPER_COMM_SIZE 64

struct keeper_entry {
	struct process_id process;
	struct book_id book;
	uint32_t source; /* enum book_source */
	char comm[KEEPER_COMM_SIZE];
};

struct keeper_hooks {
	void *context;
	/* A new keeper holds nothing: keeper_add() all books. */
	void (*refill)(void *context, struct keeper *keeper);
	/*
	 * The keeper was lost, or one could not be started (a negative errno; -EPERM: what listens
	 * there belongs to another user). This is retried, less and less often. May be NULL.
	 */
	void (*lost)(void *context, int error);
	/* Executed with --keeper-process; must call keeper_process_main(). NULL = this program. */
	const char *program;
};

/*
 * Finds a keeper at @path or starts one there. Where that fails, the hook "lost" is called before
 * this returns. 0 or a negative errno: no memory. Call keeper_take() next.
 */
int keeper_new(struct keeper **ret_keeper, struct loop *loop, const char *path,
	       const struct keeper_hooks *hooks);

/* Leaves the keeper running; it exits by itself if it holds nothing. Waits up to a second. */
struct keeper *keeper_free(struct keeper *keeper);

/*
 * Takes what was held before: @take is called for each book and owns @fd, which is read-only and
 * matches device and inode; whether it is a book must still be checked. The keeper keeps holding
 * them until they are removed. Waits up to KEEPER_TAKE_MS for each. 0, also if there is no keeper
 * yet; or a negative errno: what was held may be lost, and another keeper will be started (the hook
 * "lost" is not called for it).
 */
#define KEEPER_TAKE_MS 5000 /* a keeper that lives may have to wait for a processor */

typedef void keeper_take_fn(void *context, const struct keeper_entry *entry, int fd);

int keeper_take(struct keeper *keeper, keeper_take_fn *take, void *context);

/*
 * Makes the keeper hold this book; adding it again is harmless. @fd is read-only and stays the
 * caller's.
 */
void keeper_add(struct keeper *keeper, const struct keeper_entry *entry, int fd);

/*
 * The same for descriptors other than books, which are a file or a socket: @what says to the next daemon
 * what it is, and is not 0. Without a daemon they are held for KEEPER_OTHERS_S only, because somebody may
 * be waiting at the other end.
 */
#define KEEPER_OTHERS_S 60u

typedef void keeper_fetch_fn(void *context, uint32_t what, int fd);

/* After keeper_take(). @fetch owns the fd. 0 or a negative errno, as keeper_take(). */
int keeper_fetch(struct keeper *keeper, keeper_fetch_fn *fetch, void *context);
void keeper_hold(struct keeper *keeper, uint32_t what, int fd);
void keeper_release(struct keeper *keeper, int fd);

/* Releases a book that has been dealt with. */
void keeper_remove(struct keeper *keeper, struct book_id book);

struct keeper_counts {
	uint64_t started; /* keepers that we started */
	uint64_t lost;    /* that went away or did not answer */
	uint64_t dropped; /* books for which no descriptor was left */
	uint64_t waiting; /* messages not sent yet */
	uint64_t refused; /* books, as reported by keeper_take() */
};

void keeper_counts(const struct keeper *keeper, struct keeper_counts *ret_counts);

/*
 * Ends the keeper at @path, if there is one: for a daemon configured without one. 0 or a negative
 * errno.
 */
int keeper_quit(const char *path);
