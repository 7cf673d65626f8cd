/* SPDX-License-Identifier: Apache-2.0 */

/* A file is written under another name and renamed when it is complete. */

#include "daemon/flight/flight-files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/files/heir.h"
#include "base/quota.h"
#include "base/text.h"

#define FLIGHT_FOLDER "flight"
#define FLIGHT_NEW "new"                     /* the name of what is not complete */
#define FLIGHT_START_SLACK_NS (2 * NS_PER_S) /* start times are known to the second */

#define FLIGHT_FILE_SIZE 64u                      /* the name of a file in it */
#define FLIGHT_OWNER_SIZE (16u + NAMESPACES_SIZE) /* the name of an owner's folder */
#define FLIGHT_FILE_MODE \
	0600 /* before 0.3, files had modes and access control lists for one more user */

struct flight_files {
	struct flight_files_config config;
	int folder;          /* descriptor */
	char path[PATH_MAX]; /* of something in the state folder: what is made is for its user */
};

/* A file that is there. */
struct flight_one {
	uint32_t user;
	char name[FLIGHT_FILES_NAME_SIZE]; /* within the folder: "USER/..." */
	uint64_t size;
	uint64_t time_ns;
};

struct flight_list {
	struct flight_one *files;
	size_t count, capacity;
	struct quota counts, sizes; /* what users have; flight_surplus() knows the limits */
};

static uint64_t flight_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

static const char *flight_why(enum flight_files_why why)
{
	return why == FLIGHT_FILES_FAILED ? "failed" : "ended";
}

/* The name of the folder of an owner. */
static void flight_owner_name(const struct flight_files_owner *owner,
			      char ret_name[FLIGHT_OWNER_SIZE])
{
	(void)snprintf(ret_name, FLIGHT_OWNER_SIZE, "%" PRIu32 "%s%s", owner->user,
		       *owner->namespaces ? "@" : "", owner->namespaces);
	for (char *at = strchr(ret_name, '/'); at; at = strchr(at, '/'))
		*at = ',';
}

/* The reverse: false if it is not the name of such a folder. */
static bool flight_owner_parse(const char *name, uint32_t *ret_user,
			       char ret_namespaces[NAMESPACES_SIZE])
{
	size_t digits = strcspn(name, "@");
	char number[16];
	uint64_t user;

	if (digits >= sizeof(number) || strlen(name) >= FLIGHT_OWNER_SIZE)
		return false;
	(void)snprintf(number, sizeof(number), "%.*s", (int)digits, name);
	if (text_parse_u64(number, &user) < 0 || user > UINT32_MAX)
		return false;
	*ret_user = (uint32_t)user;
	(void)snprintf(ret_namespaces, NAMESPACES_SIZE, "%s",
		       name[digits] ? name + digits + 1 : "");
	for (char *at = strchr(ret_namespaces, ','); at; at = strchr(at, ','))
		*at = '/';
	return true;
}

static void flight_file_name(const struct flight_files_owner *owner, enum flight_files_why why,
			     char *ret_name, size_t size)
{
	(void)snprintf(ret_name, size, "%" PRIu32 "-%" PRIu64 "-%s.ttrec", owner->process.pid,
		       owner->process.start_ticks, flight_why(why));
}

/* Opens a folder for listing. The descriptor belongs to the listing. */
static DIR *flight_open_list(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !dir)
		(void)close(fd); /* a folder */
	return dir;
}

static DIR *flight_open_files(const char *state)
{
	CLEANUP_CLOSE int folder = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return folder < 0 ? NULL : flight_open_list(folder, FLIGHT_FOLDER);
}

bool flight_files_find(const char *state, const struct flight_files_owner *owner,
		       enum flight_files_why why, uint64_t start_ns,
		       char ret_name[FLIGHT_FILES_NAME_SIZE])
{
	CLEANUP_CLOSEDIR DIR *dir = flight_open_files(state);
	char file[FLIGHT_FILE_SIZE], path[FLIGHT_FILES_NAME_SIZE], namespaces[NAMESPACES_SIZE];
	const struct dirent *entry;
	struct stat st;
	uint32_t user;

	flight_file_name(owner, why, file, sizeof(file));
	while (dir && (entry = readdir(dir))) {
		int n = snprintf(path, sizeof(path), "%s/%s", entry->d_name, file);

		if (n < 0 || (size_t)n >= sizeof(path) - sizeof(FLIGHT_FOLDER) ||
		    !flight_owner_parse(entry->d_name, &user, namespaces) || user != owner->user ||
		    fstatat(dirfd(dir), path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode) ||
		    flight_ns(&st.st_mtim) + FLIGHT_START_SLACK_NS < start_ns)
			continue;
		memcpy(ret_name, FLIGHT_FOLDER "/", sizeof(FLIGHT_FOLDER));
		memcpy(ret_name + sizeof(FLIGHT_FOLDER), path, (size_t)n + 1);
		return true;
	}
	return false;
}

/* Opens one file, if it is one of ours. Of those of earlier versions it is not known in which namespaces they were. */
static int flight_open_file(int folder, const char *owner, const char *name,
			    const struct access_peer *peer, uint64_t *ret_time_ns)
{
	CLEANUP_CLOSE int parent =
		openat(folder, owner, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP_CLOSE int fd = -1;
	struct stat st;

	if (parent >= 0)
		fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || ((st.st_mode & 07777) != FLIGHT_FILE_MODE && !peer->sees_all))
		return -EACCES;
	*ret_time_ns = flight_ns(&st.st_mtim);
	return cleanup_steal_fd(&fd);
}

int flight_files_open(const char *state, const char *name, const struct access_peer *peer)
{
	CLEANUP_CLOSEDIR DIR *dir = flight_open_files(state);
	char namespaces[NAMESPACES_SIZE];
	const struct dirent *entry;
	uint64_t newest_ns = 0;
	int newest = -ENOENT;
	uint32_t user;

	if (strchr(name, '/') || strcmp(name, FLIGHT_NEW) == 0)
		return -ENOENT;
	while (dir && (entry = readdir(dir))) {
		uint64_t time_ns = 0;
		int fd;

		if (!flight_owner_parse(entry->d_name, &user, namespaces) ||
		    !access_may_see(peer, user, namespaces))
			continue;
		fd = flight_open_file(dirfd(dir), entry->d_name, name, peer, &time_ns);
		if (fd >= 0 && (newest < 0 || time_ns > newest_ns)) {
			int older = newest;

			newest = fd;
			newest_ns = time_ns;
			fd = older;
		}
		if (fd >= 0)
			(void)close(fd); /* nothing was written to it */
	}
	return newest;
}

/* A folder in another one; it may be there, also with the mode of an earlier version. */
static int flight_make_folder(const struct flight_files *files, int parent, const char *name,
			      int *ret_fd)
{
	CLEANUP_CLOSE int fd = -1;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0700) < 0)
		return -errno;
	(void)heir_give(fd, files->path); /* on failure its user cannot write it, and says so */
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

static int flight_user_folder(const struct flight_files *files,
			      const struct flight_files_owner *owner, int *ret_fd)
{
	char name[FLIGHT_OWNER_SIZE];

	flight_owner_name(owner, name);
	return flight_make_folder(files, files->folder, name, ret_fd);
}

int flight_files_new(struct flight_files **ret_files, const struct flight_files_config *config)
{
	CLEANUP_CLOSE int state = open(config->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct flight_files *files;
	int r;

	if (state < 0)
		return -errno;
	files = calloc(1, sizeof(*files));
	if (!files)
		return -ENOMEM;
	files->config = *config;
	/* The state folder's name is shorter than that. */
	(void)snprintf(files->path, sizeof(files->path), "%s/" FLIGHT_FOLDER, config->state);
	r = flight_make_folder(files, state, FLIGHT_FOLDER, &files->folder);
	if (r < 0) {
		free(files);
		return r;
	}
	flight_files_expire(files);
	*ret_files = files;
	return 0;
}

struct flight_files *flight_files_free(struct flight_files *files)
{
	if (!files)
		return NULL;
	(void)close(files->folder); /* a folder */
	free(files);
	return NULL;
}

int flight_files_make(struct flight_files *files, const struct flight_files_owner *owner,
		      int *ret_fd)
{
	CLEANUP_CLOSE int folder = -1;
	CLEANUP_CLOSE int fd = -1;
	int r = flight_user_folder(files, owner, &folder);

	if (r < 0)
		return r;
	if (unlinkat(folder, FLIGHT_NEW, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(folder, FLIGHT_NEW, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

void flight_files_discard_consume(struct flight_files *files,
				  const struct flight_files_owner *owner, int fd)
{
	CLEANUP_CLOSE int folder = -1;

	(void)close(fd); /* nobody needs it */
	if (flight_user_folder(files, owner, &folder) == 0)
		(void)unlinkat(folder, FLIGHT_NEW, 0); /* the next one replaces it */
}

int flight_files_keep_consume(struct flight_files *files, const struct flight_files_owner *owner,
			      enum flight_files_why why, int fd)
{
	char name[FLIGHT_FILE_SIZE];
	CLEANUP_CLOSE int folder = -1;
	int r = fchmod(fd, FLIGHT_FILE_MODE) < 0 ? -errno : 0;

	(void)heir_give(fd, files->path); /* on failure its user cannot remove it */
	if (r == 0)
		r = flight_user_folder(files, owner, &folder);
	flight_file_name(owner, why, name, sizeof(name));
	if (r == 0 && renameat(folder, FLIGHT_NEW, folder, name) < 0)
		r = -errno;
	if (r < 0) {
		flight_files_discard_consume(files, owner, fd);
		return r;
	}
	if (close(fd) < 0)
		return -errno;
	flight_files_expire(files);
	return 0;
}

static int flight_list_add(struct flight_list *list, uint32_t user, const char *folder,
			   const char *name, const struct stat *st)
{
	struct flight_one *files =
		array_grow(list->files, &list->capacity, list->count + 1, sizeof(*files));
	int n, r;

	if (!files)
		return -ENOMEM;
	list->files = files;
	files += list->count;
	*files = (struct flight_one){
		.user = user, .size = (uint64_t)st->st_size, .time_ns = flight_ns(&st->st_mtim)};
	n = snprintf(files->name, sizeof(files->name), "%s/%s", folder, name);
	if (n < 0 || (size_t)n >= sizeof(files->name))
		return 0; /* none of ours */
	list->count++;
	r = quota_add(&list->counts, user, 1);
	return r == 0 ? quota_add(&list->sizes, user, files->size) : r;
}

/* The folder of one owner. */
static int flight_list_owner(int parent, const char *folder, struct flight_list *list)
{
	CLEANUP_CLOSEDIR DIR *dir = NULL;
	char namespaces[NAMESPACES_SIZE];
	const struct dirent *entry;
	uint32_t user;
	int r = 0;

	if (!flight_owner_parse(folder, &user, namespaces))
		return 0;
	dir = flight_open_list(parent, folder);
	while (dir && r == 0 && (entry = readdir(dir))) {
		struct stat st;

		if (strcmp(entry->d_name, FLIGHT_NEW) != 0 &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			r = flight_list_add(list, user, folder, entry->d_name, &st);
	}
	return r;
}

static int flight_list_all(const struct flight_files *files, struct flight_list *list)
{
	CLEANUP_CLOSEDIR DIR *dir = flight_open_list(files->folder, ".");
	const struct dirent *entry;
	int r = dir ? 0 : -errno;

	while (r == 0 && (entry = readdir(dir)))
		r = flight_list_owner(dirfd(dir), entry->d_name, list);
	return r;
}

static void flight_list_remove(const struct flight_files *files, struct flight_list *list,
			       size_t index)
{
	struct flight_one *one = &list->files[index];
	char *slash = strchr(one->name, '/');

	(void)unlinkat(files->folder, one->name, 0); /* what cannot be removed is tried again */
	*slash = '\0';
	(void)unlinkat(files->folder, one->name, AT_REMOVEDIR); /* if it is empty now */
	quota_give(&list->counts, one->user, 1);
	quota_give(&list->sizes, one->user, one->size);
	*one = list->files[--list->count];
}

/* The file that has to go: the oldest, of a user who has most. SIZE_MAX: all is well. */
static size_t flight_surplus(const struct flight_files *files, const struct flight_list *list)
{
	const struct quota *quota = &list->counts;
	size_t oldest = SIZE_MAX;
	uint64_t most = quota_most(quota);

	if (most <= FLIGHT_FILES_USER_MAX && list->sizes.used > files->config.size_max) {
		quota = &list->sizes;
		most = quota_most(quota);
	} else if (most <= FLIGHT_FILES_USER_MAX && list->count <= FLIGHT_FILES_MAX) {
		return SIZE_MAX;
	}
	for (size_t i = 0; i < list->count; i++) {
		if (quota_used(quota, list->files[i].user) == most &&
		    (oldest == SIZE_MAX || list->files[i].time_ns < list->files[oldest].time_ns))
			oldest = i;
	}
	return oldest;
}

void flight_files_expire(struct flight_files *files)
{
	uint64_t now = clock_ns(CLOCK_REALTIME), keep = files->config.keep_s * NS_PER_S;
	struct flight_list list = {0};
	size_t surplus;

	/* Without memory it is done the next time. */
	if (flight_list_all(files, &list) == 0) {
		for (size_t i = list.count; i > 0; i--) {
			if (now > keep && list.files[i - 1].time_ns < now - keep)
				flight_list_remove(files, &list, i - 1);
		}
		while ((surplus = flight_surplus(files, &list)) != SIZE_MAX)
			flight_list_remove(files, &list, surplus);
	}
	quota_deinit(&list.counts);
	quota_deinit(&list.sizes);
	free(list.files);
}
