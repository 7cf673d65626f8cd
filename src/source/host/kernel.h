/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel module (ttmem.ko) as a source: /proc/driver/ttmem/totals tells everybody what every process
 * holds, without a daemon and without looking into anybody's descriptors. Books that were found otherwise
 * are known again by their inode, so nothing is counted twice.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc;
struct scan;
struct snapshot;
struct snapshot_memory;

#define KERNEL_LINE_MAX 65536u /* with its end; ours are short, later versions may have others */
#define KERNEL_COMM_SIZE 64

/*
 * What a user may make kernel_collect() keep: lines are time, rows (a holder, or a device of a process) are
 * memory, some 1300 bytes each, and 900 in the daemon's answers, of which all rows fit into one. Five hundred
 * processes on 64 devices with memory of all types are less.
 */
#define KERNEL_USER_LINES (UINT32_C(1) << 18)
#define KERNEL_USER_ROWS (UINT32_C(1) << 15)
#define KERNEL_USER_ROWS_KEPT 64u           /* also when all are used up */
#define KERNEL_ROWS_MAX (UINT32_C(1) << 16) /* of all users, but for what is kept */
#define KERNEL_USERS_MAX 1024u /* told apart; those who come later share what one has */

/* Who holds memory, as the kernel tells. */
struct kernel_holder {
	uint64_t id;  /* of a book: its inode */
	dev_t device; /* of a book: its file system; 0 = its file is closed */
	uint32_t pid; /* 0 = in no pid namespace that we see, or gone */
	uint32_t uid;
	bool is_book; /* otherwise a client of the plain ioctls */
	bool is_gone; /* its process has ended; somebody else keeps it */
	char comm[KERNEL_COMM_SIZE];
};

struct kernel_parser {
	int (*holder)(void *context, const struct kernel_holder *holder);
	/* Of the holder before. @is_torn: figures of different moments, because their owner wrote too fast. */
	int (*memory)(void *context, uint32_t device, uint32_t type,
		      const struct snapshot_memory *memory, bool is_torn);
	void *context;
};

/* The text of the file. 0, what a function returned, or -EBADMSG. Lines of later versions are skipped. */
int kernel_parse(const char *text, size_t length, const struct kernel_parser *parser);

/* How far a text has come that is handed over in pieces; begins as {0}. */
struct kernel_text {
	bool has_version;
	bool has_holder;
};

/* The whole lines of a piece; the next one begins with what was not used. As kernel_parse(). */
int kernel_parse_more(struct kernel_text *state, const char *text, size_t length,
		      const struct kernel_parser *parser, size_t *ret_used);

/* The whole file, of any size. 0, -ENOENT or -ENOTDIR without the module, or what kernel_parse() returns. */
int kernel_read(const struct proc *proc, const struct kernel_parser *parser);

/* Whether somebody else tells of this book: by device and id; the pid is only a hint where to look. */
typedef bool kernel_knows_fn(const void *context, const struct kernel_holder *book);

/*
 * Adds whom nobody else knows, with totals; of each user only so much as told above, and a note about the rest.
 * 0 (also without the module) or -ENOMEM.
 */
int kernel_collect(const struct proc *proc, kernel_knows_fn *knows, const void *context,
		   struct snapshot *snapshot);

/*
 * After a full pass: hands the scan those books that it could not find because their owners have closed our
 * descriptor, as far as the module lets us have them. 0 (also without the module) or -ENOMEM.
 */
int kernel_attach_books(struct scan *scan);

/* What is had of the module's memory: by one user, or by all. */
struct kernel_share {
	bool is_of_all;
	uint32_t uid;
	uint64_t bytes, limit;
	uint64_t user_limit; /* of each user; the line about all has it, which is the first */
};

/* Less than a small book needs. New ones are then kept elsewhere, unless their makers have CAP_SYS_RESOURCE. */
#define KERNEL_SHARE_LEAST (UINT64_C(64) << 10)

/*
 * A line of the module's stats, without its end. False: it tells of something else. @ret_share: what the line before
 * gave, at first empty.
 */
bool kernel_parse_share(const char *text, size_t length, struct kernel_share *ret_share);

/* Calls @used_up for each share of which nothing is left. Without the module there is none. */
void kernel_read_shares(const struct proc *proc,
			void (*used_up)(void *context, const struct kernel_share *share),
			void *context);

/* How it is with the module, for who explains. */
enum kernel_state {
	KERNEL_NOT_LOADED = 0,
	KERNEL_NO_NODE = 1,   /* loaded, but there is no node: udev, or a container */
	KERNEL_NO_RIGHTS = 2, /* the node cannot be opened by this user */
	KERNEL_READY = 3,
};

/* @node: where it should be; NULL = where it usually is. */
enum kernel_state kernel_look(const struct proc *proc, const char *node);

/* A sentence about it. */
const char *kernel_explain(enum kernel_state state);
