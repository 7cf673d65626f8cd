/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds books. In every process that the caller may inspect, the descriptors are searched for
 * memory files with our name; each is held, checked and attributed to its owner. A scan can be
 * repeated: known books are only found again, and those that no process holds any more are dropped.
 *
 * A descriptor that is open for reading only belongs to another reader and does not count:
 * otherwise two readers would keep the books of exited processes alive for each other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/book-id.h"
#include "base/clock.h"
#include "book/read/backing.h"
#include "book/read/reader.h"
#include "book/read/view.h"
#include "model/timebase.h"
#include "source/books/totals-cache.h"
#include "source/proc/maps-budget.h"
#include "source/proc/proc.h"

/* Limits on what one process can make us do. */
#define SCAN_CANDIDATES_MAX 64u
#define SCAN_PROCESS_NS NS_PER_S
#define SCAN_REFUSED_MAX 64u

struct book_kept;
struct book_rest;

/* What a book that was restored from a recording cannot be asked of this machine. */
struct scan_recorded {
	struct timebase_now moment; /* of the book's clock, late in the recording */
	uint64_t start_ns;          /* of its owner: CLOCK_REALTIME */
	char user[64];
};

struct scan_book {
	struct file_fd file; /* owns its fd */
	struct reader reader;
	struct book_id id;
	uint32_t uid; /* who created the file */

	struct proc_facts owner; /* of an exited one: what its book says, and who created it */
	char container[PROC_CONTAINER_SIZE];
	bool alive;
	bool gone;                      /* nobody holds it any more: the next scan drops it */
	uint32_t holder;                /* a process that has it open */
	uint64_t first_pass;            /* number of the scan that found it, from 1 */
	bool ignored;                   /* set by the scan's user: not to be read again */
	bool handed;                    /* by the daemon, which also says who owns it */
	struct scan_recorded *recorded; /* owned; NULL = it is of this machine, and of now */

	struct totals_cache totals_cache; /* of the last reader */
	struct book_rest *rest;           /* NULL = all devices are read one by one */
	struct book_kept *kept;           /* NULL = nothing; see book-kept.h */

	/* Private. */
	uint64_t pass;
	bool owner_found;
	bool refused;
};

struct scan_refused {
	uint32_t pid;
	const char *reason;
	struct book_id book;
};

/* Whether a process is to be inspected. */
typedef bool scan_wants_fn(void *context, uint32_t pid);

struct scan {
	struct proc proc;
	scan_wants_fn *wants; /* NULL = all */
	void *context;
	struct scan_book **books;
	size_t count, capacity;
	uint64_t pass;
	struct quota maps_budget; /* of this pass, by who made the book */

	/* Of the last pass. */
	struct scan_refused refused[SCAN_REFUSED_MAX];
	size_t refused_count; /* may exceed the size of the array */
	uint32_t others;      /* processes of other users, not inspected */
	uint32_t unreadable;  /* our own processes that could not be inspected */
	uint32_t unreadable_pid;
	bool starved; /* of descriptors: something may have been missed */
};

/*
 * Makes a book of a descriptor that has been verified, and consumes it in any case. Says nothing
 * about an owner. Returns 0, a negative errno, or a reader_outcome.
 */
int scan_book_new_consume(struct scan_book **ret_book, int fd);
struct scan_book *scan_book_free(struct scan_book *book);

/* For CLEANUP(). */
static inline void scan_book_cleanup(struct scan_book **book)
{
	scan_book_free(*book);
}

/* How a shard of it has to be read: nobody writes a restored one, whether or not its owner lived. */
static inline enum view_owner scan_book_owner(const struct scan_book *book)
{
	return book->alive && !book->recorded ? VIEW_LIVING : VIEW_DEAD;
}

/* A number for a book that no other book has, nor had since the machine was started. */
uint64_t scan_book_number(struct book_id id, uint64_t start_ticks);

int scan_new(struct scan **ret_scan);
struct scan *scan_free(struct scan *scan);

/* Takes a book out of the scan; the next pass finds it again. */
struct scan_book *scan_release(struct scan *scan, size_t index);

/* What the daemon says about a book that it hands over. */
struct scan_handed {
	struct proc_facts owner;
	uint32_t maker;
	const char *container;
	bool alive;
};

/* Whether the last pass found this file, or it was handed over since. */
bool scan_has(const struct scan *scan, struct book_id id);

/*
 * After a pass: adds a book that the pass could not find itself. It is checked like any other
 * except for its owner; the fd is consumed in any case. Returns 0 (also if the book is already
 * there), a negative errno, or why it is refused: a verify_book_outcome or a reader_outcome.
 */
int scan_hand_consume(struct scan *scan, int fd, const struct scan_handed *handed);

/* Adds a book that was restored; consumed in any case. 0 or -ENOMEM. No pass may follow. */
int scan_put_consume(struct scan *scan, struct scan_book *book);

/* By pid, as a pass leaves them; for use after books were handed over. */
void scan_sort(struct scan *scan);

/* Makes one pass. Returns 0 or a negative errno; what one process does wrong is no failure. */
int scan_run(struct scan *scan);
