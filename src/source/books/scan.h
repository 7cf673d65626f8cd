/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finding books. Every process that the caller may look at has its descriptors read for memory files of
 * our name; each is held, checked and attributed to its owner. A scan can be repeated: what is known
 * already is only found again, and what no process holds any more is let go.
 *
 * A descriptor that is open for reading only is another reader's and does not count: otherwise two
 * readers would keep the books of the dead alive for each other.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "book/read/backing.h"
#include "book/read/reader.h"
#include "source/books/totals-cache.h"
#include "source/proc/proc.h"

/* What one process may make us look at. */
#define SCAN_CANDIDATES_MAX 64u
#define SCAN_PROCESS_NS NS_PER_S
#define SCAN_REFUSED_MAX 64u

struct scan_book {
	struct file_fd file; /* owns its fd */
	struct poller reader;
	dev_t device;
	ino_t inode;
	uint32_t uid; /* who made the file */

	struct proc_facts owner; /* of a dead one: what its book says, and who made it */
	char container[PROC_CONTAINER_SIZE];
	bool alive;
	bool gone;           /* nobody holds it any more: the next scan lets it go */
	uint32_t holder;     /* a process that has it open */
	uint64_t first_pass; /* of the scan in which it was found, counted from 1 */
	bool ignored;        /* for who uses the scan: not to be looked at again */
	bool handed;         /* by the daemon, which also says who owns it */

	struct totals_cache totals_cache; /* of who read it last */

	/* Private. */
	uint64_t pass;
	bool owner_found;
	bool refused;
};

struct scan_refused {
	uint32_t pid;
	const char *reason;
	dev_t device;
	ino_t inode;
};

/* Whether a process is to be looked at. */
typedef bool scan_wants_fn(void *context, uint32_t pid);

struct scan {
	struct proc proc;
	scan_wants_fn *wants; /* NULL = everybody */
	void *context;
	struct scan_book **books;
	size_t count, capacity;
	uint64_t pass;

	/* Of the last pass. */
	struct scan_refused refused[SCAN_REFUSED_MAX];
	size_t refused_count; /* may be more than there is room for */
	uint32_t others;      /* processes of other users, not looked at */
	uint32_t unreadable;  /* processes of our own that could not be looked at */
	uint32_t unreadable_pid;
	bool starved; /* of descriptors: something may have been overlooked */
};

/*
 * A book behind a descriptor that has been found genuine; takes the descriptor in any case. Says
 * nothing of an owner. 0, a negative errno, or a reader_outcome.
 */
int scan_book_new_consume(struct scan_book **ret_book, int fd);
struct scan_book *scan_book_free(struct scan_book *book);

int scan_new(struct scan **ret_scan);
struct scan *scan_free(struct scan *scan);

/* Takes a book out of the scan, which then finds it anew the next time. */
struct scan_book *scan_release(struct scan *scan, size_t index);

/* What the daemon says of a book that it hands on. */
struct scan_handed {
	struct proc_facts owner;
	uint32_t maker;
	const char *container;
	bool alive;
};

/* Whether the last pass found this file, or it was handed over since. */
bool scan_has(const struct scan *scan, dev_t device, ino_t inode);

/*
 * After a pass: adds a book that the pass could not find itself. It is checked like any other, but for
 * its owner; takes the fd in any case. 0 (also if it is there already), a negative errno, or why it
 * is refused: a verify_book_outcome or a reader_outcome.
 */
int scan_hand_consume(struct scan *scan, int fd, const struct scan_handed *handed);

/* By pid, as a pass leaves them: after books were handed over. */
void scan_sort(struct scan *scan);

/* Looks once. 0 or a negative errno; what one process does wrong is no failure. */
int scan_run(struct scan *scan);
