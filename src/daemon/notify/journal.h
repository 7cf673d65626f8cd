/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Incidents as entries of systemd's journal, with fields that can be queried (journalctl
 * TTMEM_KIND=leak), in addition to the lines that the daemon prints. docs/journal.md lists the
 * fields and the ids.
 *
 * Each entry is one datagram of the journal's native protocol, on a nonblocking socket: a stuck
 * journal costs entries, which are counted, but not the daemon's time. (libsystemd's own call
 * blocks.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define JOURNAL_TEXT_MAX 1024u   /* of a message; the rest is truncated */
#define JOURNAL_STACK_MAX 2048u  /* likewise of a stack */
#define JOURNAL_ENTRY_MAX 16384u /* of all fields: more than the sum of their limits */
#define JOURNAL_NONE UINT32_MAX

struct journal;

struct journal_entry {
	const char *kind;    /* a word such as "leak" */
	const char *message; /* one line for people */
	uint32_t pid;        /* 0 = no process */
	const char *comm;    /* any bytes; NULL = unknown */
	uint32_t device;     /* JOURNAL_NONE = none or several */
	const char *type;    /* of buffers; NULL = none or several */
	uint64_t bytes;
	uint64_t buffers;
	const char *stack; /* one line, innermost frame first; NULL = none */
	const char *site;  /* the frame that stands for it; NULL = none */
};

/*
 * Whether output to @fd goes to the journal, according to JOURNAL_STREAM, which the service manager
 * sets: for the daemon's standard output or error.
 */
bool journal_is_stream(int fd);

/* @path: the journal's socket, NULL for the usual one. 0 or a negative errno. */
int journal_new(struct journal **ret_journal, const char *path);
struct journal *journal_free(struct journal *journal);

/* Never blocks. 0, or a negative errno: the entry was dropped. From one thread at a time. */
int journal_send(struct journal *journal, const struct journal_entry *entry);

/* Whether there is a journal to send to: 0 or a negative errno. Never blocks. */
int journal_check(const struct journal *journal);

/* Formats the datagram, for tests. Return: its length; 0 if it would be too long. */
size_t journal_format(const struct journal_entry *entry, char ret_bytes[JOURNAL_ENTRY_MAX]);
