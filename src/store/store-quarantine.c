/* SPDX-License-Identifier: Apache-2.0 */

/* Renames unusable databases, and removes the oldest ones. */

#include "store/store-quarantine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/small-file.h"
#include "store/store.h"

#define STORE_QUARANTINE_STAMP "YYYYmmddTHHMMSSZ"
#define STORE_QUARANTINE_LENGTH (sizeof(STORE_FILE ".YYYYmmddTHHMMSSZ-nn") - 1)
#define STORE_QUARANTINE_SIZE (STORE_QUARANTINE_LENGTH + 1)
#define STORE_QUARANTINE_TRIES 100u /* in one second */

/*
 * The log, the shared memory of its users, and the database itself: it goes last, because a log
 * left behind would be taken for that of the next database.
 */
static const char *const store_quarantine_endings[] = {"-wal", "-shm", ""};

/* history.db.20250102T030405Z-00: created by us; sorting by name is sorting by time. */
static bool store_quarantine_is_ours(const char *name)
{
	size_t stem = strlen(STORE_FILE ".");

	return strlen(name) == STORE_QUARANTINE_LENGTH &&
	       strncmp(name, STORE_FILE ".", stem) == 0 &&
	       strspn(name + stem, "0123456789TZ-") == STORE_QUARANTINE_LENGTH - stem;
}

static bool store_quarantine_exists(int folder, const char *name)
{
	return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * What cannot be removed is set aside the next time. An empty folder in place of a file is removed
 * too; one that is not empty is not ours.
 */
static void store_quarantine_unlink(int folder, const char *name)
{
	char file[STORE_QUARANTINE_SIZE + 4];

	for (size_t i = 0; i < ARRAY_SIZE(store_quarantine_endings); i++) {
		(void)snprintf(file, sizeof(file), "%s%s", name,
			       store_quarantine_endings[i]); /* fits */
		if (unlinkat(folder, file, 0) < 0)
			(void)unlinkat(folder, file, AT_REMOVEDIR);
	}
}

/* Removes the oldest until @keep are left. */
static void store_quarantine_trim(int folder, unsigned int keep)
{
	for (;;) {
		CLEANUP_CLOSEDIR DIR *listing = small_file_list(folder, ".");
		char oldest[STORE_QUARANTINE_SIZE] = "";
		unsigned int count = 0;
		struct dirent *entry;

		while (listing && (entry = readdir(listing))) { /* NOLINT(concurrency-mt-unsafe) */
			if (!store_quarantine_is_ours(entry->d_name))
				continue;
			count++;
			if (!*oldest || strcmp(entry->d_name, oldest) < 0)
				memcpy(oldest, entry->d_name, sizeof(oldest));
		}
		if (count <= keep)
			return;
		store_quarantine_unlink(folder, oldest);
		if (store_quarantine_exists(folder, oldest))
			return;
	}
}

static void store_quarantine_stamp(uint64_t now_ns, unsigned int number, char *ret_name)
{
	time_t now = (time_t)(now_ns / NS_PER_S);
	struct tm parts = {0};
	char stamp[sizeof(STORE_QUARANTINE_STAMP)];

	(void)gmtime_r(&now, &parts); /* fails only for years beyond 64 bits of ns */
	if (strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &parts) == 0)
		memcpy(stamp, "00000000T000000Z", sizeof(stamp));
	(void)snprintf(ret_name, STORE_QUARANTINE_SIZE, STORE_FILE ".%s-%02u", stamp, number % 100);
}

int store_aside(const char *folder, uint64_t now_ns, char *ret_name, size_t size)
{
	CLEANUP_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char from[STORE_QUARANTINE_SIZE], to[STORE_QUARANTINE_SIZE + 4],
		name[STORE_QUARANTINE_SIZE];

	if (fd < 0)
		return -errno;
	for (unsigned int i = 0; i < STORE_QUARANTINE_TRIES; i++) {
		store_quarantine_stamp(now_ns, i, name);
		if (!store_quarantine_exists(fd, name))
			break;
	}
	/* With the same name the log is still found when someone opens the file to inspect it. */
	for (size_t i = 0; i < ARRAY_SIZE(store_quarantine_endings); i++) {
		(void)snprintf(from, sizeof(from), STORE_FILE "%s", store_quarantine_endings[i]);
		(void)snprintf(to, sizeof(to), "%s%s", name, store_quarantine_endings[i]);
		if (renameat(fd, from, fd, to) < 0 && errno != ENOENT)
			return -errno;
	}
	store_quarantine_trim(fd, STORE_QUARANTINE_MAX);
	(void)snprintf(ret_name, size, "%s", name); /* for people: may be cut */
	return 0;
}

void store_quarantine_remove(const char *folder)
{
	CLEANUP_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		store_quarantine_unlink(fd, STORE_FILE);
}
