/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which descriptors are open, and what they refer to. The target is compared too: a test that
 * closes a descriptor it does not own and gets the number again has done damage.
 */

#include "base/testing/unit-sweep.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More than any test opens; any beyond that are not compared. */
#define UNIT_FDS_MAX 1024

struct unit_fds {
	size_t n;
	struct {
		int fd;
		char target[128];
	} list[UNIT_FDS_MAX];
};

struct unit_fds *unit_fds_new(void)
{
	struct unit_fds *fds = calloc(1, sizeof(*fds));
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (fds && dir && fds->n < UNIT_FDS_MAX && (entry = readdir(dir))) {
		char *target = fds->list[fds->n].target;
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.' || fd == dirfd(dir))
			continue;
		/* Long targets are cut in both lists alike; calloc() provides the final zero. */
		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(fds->list[0].target) - 1) <
		    0)
			snprintf(target, sizeof(fds->list[0].target), "(unknown)");
		fds->list[fds->n++].fd = fd;
	}
	if (dir)
		closedir(dir);

	return fds;
}

struct unit_fds *unit_fds_free(struct unit_fds *fds)
{
	free(fds);
	return NULL;
}

static bool unit_fds_has(const struct unit_fds *fds, int fd, const char *target)
{
	for (size_t i = 0; i < fds->n; i++)
		if (fds->list[i].fd == fd && strcmp(fds->list[i].target, target) == 0)
			return true;

	return false;
}

/* Counts what is in @a but not in @b, and prints it after @word unless @word is NULL. */
static int unit_fds_missing(const struct unit_fds *a, const struct unit_fds *b, const char *word)
{
	int n = 0;

	for (size_t i = 0; i < a->n; i++) {
		if (unit_fds_has(b, a->list[i].fd, a->list[i].target))
			continue;
		n++;
		if (word)
			fprintf(stderr, "%s: descriptor %d, %s\n", word, a->list[i].fd,
				a->list[i].target);
	}

	return n;
}

bool unit_fds_compare(const struct unit_fds *before, const struct unit_fds *after, int more)
{
	if (!before || !after)
		return false;
	if (unit_fds_missing(before, after, NULL) == 0 &&
	    unit_fds_missing(after, before, NULL) == more)
		return true;

	unit_fds_missing(before, after, "closed, but not ours");
	unit_fds_missing(after, before, "left open");
	fprintf(stderr, "expected %d left open\n", more);
	return false;
}
