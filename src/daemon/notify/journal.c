/* SPDX-License-Identifier: Apache-2.0 */

/* Entries for the journal: NAME=VALUE lines in one datagram. */

#include "daemon/notify/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/quota.h"
#include "base/text.h"

#define JOURNAL_COMM_MAX 64u

struct journal {
	int fd;
	struct sockaddr_un address;
};

/* Never change an id: users' filters and alerts refer to them. */
struct journal_kind {
	const char *kind;
	const char *id;
	int priority; /* as in syslog: 3 error, 4 warning, 5 notice */
};

static const struct journal_kind journal_kinds[] = {
	{"leak", "8de2c3113e8346e49b3db1f38a597b41", 4},
	{"double_free", "4b696889f2a347b28122349a2671f97a", 3},
	{"unknown_free", "71619212307b47f3a6aa723883a05350", 4},
	{"size_change", "7533b816f3ed4182bfe35179a5b3bd32", 4},
	{"alloc_failed", "ffe24b9dbbff4110a710ea330fa9bea6", 3},
	{"clash", "bf95d39de78042879c687fb330741d5c", 3},
	{"trace_overlap", "7818036027824da8b71a56dda1b4d4b6", 3},
	{"overlap", "2e28b93b4bb348a397c5e64edb863cb9", 3},
	{"held_at_close", "be7f6cd5a8ed49d6972143b297709f3f", 5},
	{"unobserved_exits", "1b4043c7743748ceae51bca134fab3a0", 4},
};

static const struct journal_kind journal_other = {.priority = 5};

static const struct journal_kind *journal_find(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(journal_kinds); i++) {
		if (strcmp(journal_kinds[i].kind, kind) == 0)
			return &journal_kinds[i];
	}
	return &journal_other;
}

/* Writes a field whose text comes from others: harmless, truncated, on one line. */
static void journal_put_text(FILE *out, const char *name, const char *text, size_t max)
{
	char clean[TEXT_CLEAN_SIZE(JOURNAL_STACK_MAX)];

	(void)text_clean(text, strnlen(text, bits_min(max, JOURNAL_STACK_MAX)), clean);
	/* A line break would end the field and start another one. */
	fprintf(out, "%s=", name);
	text_put_line(out, clean);
	fputc('\n', out);
}

static void journal_put(FILE *out, const struct journal_entry *entry)
{
	const struct journal_kind *kind = journal_find(entry->kind);

	journal_put_text(out, "MESSAGE", entry->message, JOURNAL_TEXT_MAX);
	if (kind->id)
		fprintf(out, "MESSAGE_ID=%s\n", kind->id);
	fprintf(out, "PRIORITY=%d\nSYSLOG_IDENTIFIER=ttmemd\n", kind->priority);
	journal_put_text(out, "TTMEM_KIND", entry->kind, JOURNAL_COMM_MAX);
	if (entry->pid != 0)
		fprintf(out, "TTMEM_PID=%" PRIu32 "\n", entry->pid);
	if (entry->comm)
		journal_put_text(out, "TTMEM_COMM", entry->comm, JOURNAL_COMM_MAX);
	if (entry->device != JOURNAL_NONE)
		fprintf(out, "TTMEM_DEVICE=%" PRIu32 "\n", entry->device);
	if (entry->type)
		journal_put_text(out, "TTMEM_TYPE", entry->type, JOURNAL_COMM_MAX);
	fprintf(out, "TTMEM_BYTES=%" PRIu64 "\nTTMEM_BUFFERS=%" PRIu64 "\n", entry->bytes,
		entry->buffers);
	if (entry->stack)
		journal_put_text(out, "TTMEM_STACK", entry->stack, JOURNAL_STACK_MAX);
	if (entry->site)
		journal_put_text(out, "TTMEM_SITE", entry->site, JOURNAL_TEXT_MAX);
}

size_t journal_format(const struct journal_entry *entry, char ret_bytes[JOURNAL_ENTRY_MAX])
{
	FILE *out = fmemopen(ret_bytes, JOURNAL_ENTRY_MAX, "we");
	bool is_whole;
	long length;

	if (!out)
		return 0;
	journal_put(out, entry);
	is_whole = fflush(out) == 0 && !ferror(out);
	length = ftell(out);
	(void)fclose(out); /* flushed above */
	return is_whole && length > 0 ? (size_t)length : 0;
}

bool journal_is_stream(int fd)
{
	const char *told = getenv("JOURNAL_STREAM");
	uint64_t device, inode;
	struct stat file;
	char rest;

	return told && sscanf(told, "%" SCNu64 ":%" SCNu64 "%c", &device, &inode, &rest) == 2 &&
	       fstat(fd, &file) == 0 && file.st_dev == device && file.st_ino == inode;
}

int journal_new(struct journal **ret_journal, const char *path)
{
	CLEANUP_FREE struct journal *journal = calloc(1, sizeof(*journal));

	if (!journal)
		return -ENOMEM;
	if (!path)
		path = JOURNAL_SOCKET;
	if (strlen(path) >= sizeof(journal->address.sun_path))
		return -ENAMETOOLONG;
	journal->address.sun_family = AF_UNIX;
	memcpy(journal->address.sun_path, path, strlen(path));
	journal->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (journal->fd < 0)
		return -errno;
	*ret_journal = cleanup_steal(journal);
	return 0;
}

struct journal *journal_free(struct journal *journal)
{
	if (!journal)
		return NULL;
	(void)close(journal->fd); /* sent entries are unaffected */
	free(journal);
	return NULL;
}

int journal_send(struct journal *journal, const struct journal_entry *entry)
{
	char bytes[JOURNAL_ENTRY_MAX];
	size_t length = journal_format(entry, bytes);
	int r = -EMSGSIZE;

	/* The socket is not connected, so that a restarted journal is found again. */
	while (length > 0) {
		if (sendto(journal->fd, bytes, length, MSG_NOSIGNAL,
			   (const struct sockaddr *)&journal->address,
			   sizeof(journal->address)) >= 0)
			return 0;
		r = -errno;
		if (r != -EINTR)
			break;
	}
	quota_count(QUOTA_JOURNAL, 1);
	return r;
}

int journal_check(const struct journal *journal)
{
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	return connect(fd, (const struct sockaddr *)&journal->address, sizeof(journal->address)) < 0
		       ? -errno
		       : 0;
}
