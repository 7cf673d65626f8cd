/* SPDX-License-Identifier: Apache-2.0 */

/* Reads /proc/PID/fd and /proc/PID/maps, within a budget. */

#include "source/host/nodes-read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/files/small-file.h"
#include "base/text.h"
#include "model/cards/numbering.h"
#include "source/proc/pid-cache.h"

#define NODES_LINKS_ONE 4096u      /* descriptors of one process that are read */
#define NODES_LINKS_ALL 16384u     /* of all, for one snapshot */
#define NODES_MAPS_ONE (2u << 20)  /* bytes of one list of mappings */
#define NODES_MAPS_ALL (16u << 20) /* of all, for one snapshot */

bool nodes_reader_begin(struct nodes_reader *reader, struct pid_cache *pid_cache,
			struct snapshot *snapshot)
{
	const char *root = secure_getenv("TTMEM_DEV_ROOT");

	*reader = (struct nodes_reader){.pid_cache = pid_cache, .snapshot = snapshot};
	return snprintf(reader->folder, sizeof(reader->folder), "%s/tenstorrent/",
			root && *root ? root : "/dev") < (int)sizeof(reader->folder);
}

/* The number at the end of a link, with or without " (deleted)"; false: it is no node. */
static bool nodes_parse(const char *name, uint32_t *ret_number, bool *ret_is_removed)
{
	size_t length = strspn(name, "0123456789");
	char digits[16] = {0};
	uint64_t number;

	if (length == 0 || length >= sizeof(digits))
		return false;
	memcpy(digits, name, length);
	*ret_is_removed = strcmp(name + length, " (deleted)") == 0;
	if ((name[length] && !*ret_is_removed) || text_parse_u64(digits, &number) < 0 ||
	    number >= BOOK_DEVICES)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static size_t nodes_card_of_number(const struct snapshot *snapshot, uint32_t number)
{
	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (snapshot->cards[i].number == number)
			return i;
	}
	return SIZE_MAX;
}

/* The card of a descriptor: a container may give a node another name, but not another number. */
static size_t nodes_card(const struct snapshot *snapshot, int folder, const char *name,
			 uint32_t number)
{
	struct stat st;

	if (fstatat(folder, name, &st, 0) == 0 && S_ISCHR(st.st_mode)) {
		for (size_t i = 0; i < snapshot->card_count; i++) {
			if (snapshot->cards[i].node && snapshot->cards[i].node == st.st_rdev)
				return i;
		}
	}
	return nodes_card_of_number(snapshot, number);
}

static void nodes_take(const struct nodes_reader *reader, int folder, const char *name,
		       const char *target, struct nodes_found *found)
{
	uint32_t number;
	bool is_removed;
	size_t card;

	if (strncmp(target, reader->folder, strlen(reader->folder)) != 0 ||
	    !nodes_parse(target + strlen(reader->folder), &number, &is_removed))
		return;
	if (is_removed) {
		if (found->removed_count < NODES_NUMBERS_MAX)
			found->removed[found->removed_count++] = number;
		return;
	}
	card = nodes_card(reader->snapshot, folder, name, number);
	if (found->opened_count < NODES_NUMBERS_MAX)
		found->opened[found->opened_count++] = number;
	if (card != SIZE_MAX)
		found->open[card] = true;
}

void nodes_read(struct nodes_reader *reader, uint32_t pid, struct nodes_found *ret_found)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *item;
	char path[32], target[NODES_PATH_MAX + 32];
	size_t links = 0;

	*ret_found = (struct nodes_found){.pid = pid};
	snprintf(path, sizeof(path), "%" PRIu32 "/fd", pid);
	listing = proc_list(pid_cache_proc(reader->pid_cache), path);
	while (listing && (item = readdir(listing))) {
		ssize_t length;

		if (item->d_name[0] == '.')
			continue;
		if (++links > NODES_LINKS_ONE || ++reader->links > NODES_LINKS_ALL)
			return;
		length = readlinkat(dirfd(listing), item->d_name, target, sizeof(target) - 1);
		if (length < 0 && errno == EACCES)
			return;
		target[length < 0 ? 0 : length] = '\0';
		nodes_take(reader, dirfd(listing), item->d_name, target, ret_found);
	}
	ret_found->is_known = listing != NULL;
}

/* A mapping of a file; parts of a line. */
struct nodes_mapping {
	const char *range, *rights, *path;
};

static bool nodes_next_mapping(struct nodes_reader *reader, FILE *file, size_t *bytes, char **line,
			       size_t *size, struct nodes_mapping *ret_mapping)
{
	while (*bytes < NODES_MAPS_ONE && reader->maps < NODES_MAPS_ALL) {
		ssize_t n = getline(line, size, file);
		char *path, *space;

		if (n <= 0)
			return false;
		*bytes += (size_t)n;
		reader->maps += (size_t)n;
		if ((*line)[n - 1] == '\n')
			(*line)[n - 1] = '\0';
		path = strchr(*line, '/');
		space = strchr(*line, ' ');
		if (!path || !space || path < space + 5)
			continue;
		*space = '\0';
		*ret_mapping = (struct nodes_mapping){*line, space + 1, path};
		return true;
	}
	return false;
}

static FILE *nodes_open_maps(const struct nodes_reader *reader, uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "%" PRIu32 "/maps", pid);
	return small_file_stream(pid_cache_proc(reader->pid_cache)->root, path);
}

uint32_t nodes_read_umd(struct nodes_reader *reader, uint32_t pid)
{
	CLEANUP_FCLOSE FILE *file = nodes_open_maps(reader, pid);
	CLEANUP_FREE char *line = NULL;
	size_t size = 0, bytes = 0;
	uint32_t version = 0;
	struct nodes_mapping mapping;

	while (file && !version && nodes_next_mapping(reader, file, &bytes, &line, &size, &mapping))
		version = numbering_parse_version(mapping.path);
	return version;
}

/* Nothing here may wait for a file system that does not answer: what is known of the file is enough. */
static size_t nodes_card_by_device(const struct snapshot *snapshot, int folder, const char *name)
{
	struct statx st;
	uint64_t node;

	if (statx(folder, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &st) < 0 ||
	    !S_ISCHR(st.stx_mode))
		return SIZE_MAX;
	node = makedev(st.stx_rdev_major, st.stx_rdev_minor);
	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (snapshot->cards[i].node == node &&
		    snapshot->cards[i].condition.state != SNAPSHOT_GONE)
			return i;
	}
	return SIZE_MAX;
}

static void nodes_read_devices(const struct nodes_reader *reader, struct nodes_found *found)
{
	CLEANUP_CLOSEDIR DIR *listing = NULL;
	const struct dirent *item;
	char path[32];
	size_t card;

	snprintf(path, sizeof(path), "%" PRIu32 "/fd", found->pid);
	listing = proc_list(pid_cache_proc(reader->pid_cache), path);
	while (listing && (item = readdir(listing))) {
		char target[2];

		/* Sockets, pipes and the like have no path. */
		if (item->d_name[0] == '.' ||
		    readlinkat(dirfd(listing), item->d_name, target, sizeof(target)) <= 0 ||
		    target[0] != '/')
			continue;
		card = nodes_card_by_device(reader->snapshot, dirfd(listing), item->d_name);
		if (card != SIZE_MAX)
			found->open[card] = true;
	}
}

/* The card of a mapping: by its device number, where we may ask for it, else by its name. */
static size_t nodes_card_of_mapping(const struct nodes_reader *reader, uint32_t pid,
				    const struct nodes_mapping *mapping)
{
	size_t length = strlen(reader->folder), card;
	uint32_t number;
	bool is_removed;
	char path[96];

	snprintf(path, sizeof(path), "%" PRIu32 "/map_files/%s", pid, mapping->range);
	card = nodes_card_by_device(reader->snapshot, pid_cache_proc(reader->pid_cache)->root,
				    path);
	if (card != SIZE_MAX || strncmp(mapping->path, reader->folder, length) != 0 ||
	    !nodes_parse(mapping->path + length, &number, &is_removed) || is_removed)
		return card;
	return nodes_card_of_number(reader->snapshot, number);
}

void nodes_read_closely(struct nodes_reader *reader, struct nodes_found *found)
{
	CLEANUP_FCLOSE FILE *file = nodes_open_maps(reader, found->pid);
	CLEANUP_FREE char *line = NULL;
	size_t size = 0, bytes = 0;
	struct nodes_mapping mapping;

	nodes_read_devices(reader, found);
	while (file && nodes_next_mapping(reader, file, &bytes, &line, &size, &mapping)) {
		size_t card = SIZE_MAX;

		if (mapping.rights[3] == 's')
			card = nodes_card_of_mapping(reader, found->pid, &mapping);
		if (card != SIZE_MAX)
			found->open[card] = true;
	}
	if (!file || !feof(file))
		found->is_known = false;
}
