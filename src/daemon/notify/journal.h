/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a person should see, for systemd's journal: entries with fields that can be asked for
 * (journalctl TTMEM_KIND=leak), beside the lines that the daemon prints. docs/journal.md lists the fields
 * and the ids.
 *
 * One datagram each, in the journal's native protocol, on a socket that never blocks: a journal that is
 * stuck costs entries, which are counted, and not the daemon's time. (libsystemd's own call waits.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define JOURNAL_TEXT_MAX 1024u  /* of a message; the rest is cut */
#define JOURNAL_ENTRY_MAX 8192u /* of all fields: more than the longest of each */
#define JOURNAL_NONE UINT32_MAX

struct journal;

struct journal_entry {
	const char *kind;    /* a word such as "leak" */
	const char *message; /* one line for people */
	uint32_t pid;        /* 0 = of no process */
	const char *comm;    /* any bytes; NULL = not known */
	uint32_t device;     /* JOURNAL_NONE = of none or several */
	const char *type;    /* of buffers; NULL = of none or several */
	uint64_t bytes;
	uint64_t buffers;
};

/*
 * Whether what is written to @fd ends up in the journal, as its service manager said in JOURNAL_STREAM: for
 * the daemon's standard output or error.
 */
bool journal_is_stream(int fd);

/* @path: where the journal listens, NULL for the usual place. 0 or a negative errno. */
int journal_new(struct journal **ret_journal, const char *path);
struct journal *journal_free(struct journal *journal);

/* 0, or a negative errno: it was dropped. Never waits. From one thread at a time. */
int journal_send(struct journal *journal, const struct journal_entry *entry);

/* Entries that were dropped. */
uint64_t journal_dropped(const struct journal *journal);

/* The datagram, for tests. Return: its length; 0 if it would be too long. */
size_t journal_format(const struct journal_entry *entry, char ret_bytes[JOURNAL_ENTRY_MAX]);
