/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel module (ttmem.ko) as a source: /proc/driver/ttmem/totals shows everybody what every
 * process holds, without a daemon and without reading anybody's descriptors. Books that were found
 * otherwise are recognized by their inode, so nothing is counted twice.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/book-id.h"

struct proc;
struct scan;
struct snapshot;
struct snapshot_memory;

#define KERNEL_LINE_MAX 65536u /* with its newline; later versions may have longer lines */
#define KERNEL_COMM_SIZE 64

/*
 * What a user may make kernel_collect() keep: lines cost time; rows (a holder, or a device of a
 * process) cost memory, some 1300 bytes each, and 900 in the daemon's answers, of which one can
 * hold all rows. Five hundred processes on 64 devices with memory of all types need less.
 */
#define KERNEL_USER_LINES (UINT32_C(1) << 18)
#define KERNEL_USER_ROWS (UINT32_C(1) << 15)
#define KERNEL_USER_ROWS_KEPT 64u /* reserved for each, even when the common budget is exhausted */
#define KERNEL_ROWS_MAX (UINT32_C(1) << 16) /* of all users, without what is reserved */
#define KERNEL_USERS_MAX 1024u              /* counted separately; later ones share one budget */

/* A holder of memory, as the kernel reports it. */
struct kernel_holder {
	struct book_id
		book; /* device 0: its file is closed; of any other client: a number in place of the inode */
	uint32_t pid; /* 0 = in no pid namespace visible to us, or exited */
	uint32_t uid;
	bool is_book; /* otherwise a client of the plain ioctls */
	bool is_gone; /* its process has exited; another one keeps it */
	char comm[KERNEL_COMM_SIZE];
};

struct kernel_parser {
	int (*holder)(void *context, const struct kernel_holder *holder);
	/*
	 * For the last holder. @is_torn: figures of different moments, because their owner wrote
	 * too fast.
	 */
	int (*memory)(void *context, uint32_t device, uint32_t type,
		      const struct snapshot_memory *memory, bool is_torn);
	void *context;
};

/* State of a text that is parsed in pieces; starts as {0}. */
struct kernel_text {
	bool has_version;
	bool has_holder;
};

/*
 * Parses the complete lines of a piece; the next one must begin with what was not used. Returns 0, what
 * a function returned, -EBADMSG, or -EPROTONOSUPPORT if the module is newer and says that we cannot
 * understand it. Lines that we do not know are skipped.
 */
int kernel_parse_more(struct kernel_text *state, const char *text, size_t length,
		      const struct kernel_parser *parser, size_t *ret_used);

/*
 * Reads the whole file, of any size. Returns 0, -ENOENT or -ENOTDIR without the module, or what
 * kernel_parse_more() returns.
 */
int kernel_read(const struct proc *proc, const struct kernel_parser *parser);

/* Whether this book is known otherwise: by device and id; the pid is only a hint where to look. */
typedef bool kernel_knows_fn(const void *context, const struct kernel_holder *book);

/*
 * Adds holders not known otherwise, with totals; for each user only within the budget above, with a
 * note about the rest. Returns 0 (also without the module) or -ENOMEM.
 */
int kernel_collect(const struct proc *proc, kernel_knows_fn *knows, const void *context,
		   struct snapshot *snapshot);

/*
 * After a full pass: hands the scan the books that it could not find because their owners have
 * closed our descriptor, as far as the module allows. Returns 0 (also without the module) or
 * -ENOMEM.
 */
int kernel_attach_books(struct scan *scan);

/* How much of the module's memory is in use: by one user, or by all. */
struct kernel_share {
	bool is_of_all;
	uint32_t uid;
	uint64_t bytes, limit;
	uint64_t user_limit; /* of each user; only in the line for all, which comes first */
};

/*
 * Less than a small book needs. New books are then memory files, unless their creators have
 * CAP_SYS_RESOURCE.
 */
#define KERNEL_SHARE_LEAST (UINT64_C(64) << 10)

/*
 * Parses a line of the module's stats, without its newline. False: it is a different one.
 * @ret_share: the result of the previous line, initially empty.
 */
bool kernel_parse_share(const char *text, size_t length, struct kernel_share *ret_share);

/* Calls @used_up for each exhausted share. Without the module there is none. */
void kernel_read_shares(const struct proc *proc,
			void (*used_up)(void *context, const struct kernel_share *share),
			void *context);

/* The state of the module, for explanations. */
enum kernel_state {
	KERNEL_NOT_LOADED = 0,
	KERNEL_NO_NODE = 1,   /* loaded, but there is no node: udev, or a container */
	KERNEL_NO_RIGHTS = 2, /* this user cannot open the node */
	KERNEL_READY = 3,
};

/* @node: its path; NULL = the usual one. */
enum kernel_state kernel_look(const struct proc *proc, const char *node);

/* A sentence that explains the state. */
const char *kernel_explain(enum kernel_state state);
