/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Follows a path one name at a time, holding the folder it is in: so what was checked is what is opened,
 * whatever others rename meanwhile.
 */

#include "base/files/user-file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define USER_FILE_LINKS 40 /* as many as the kernel follows */

/* Where we are in a path. */
struct user_file_walk {
	int folder;
	bool is_shared; /* others may put something into the folder */
	uid_t owner;    /* of the folder */
	int links;
	bool is_own;         /* nothing on the way may be another user's */
	bool makes;          /* folders that are missing */
	char rest[PATH_MAX]; /* of the path, after the folder */
};

static bool user_file_is_others(const struct user_file_walk *walk, uid_t owner)
{
	return walk->is_own && owner != geteuid() && owner != 0;
}

static int user_file_enter(struct user_file_walk *walk, const char *name)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(walk->folder, name, flags);
	struct stat st;

	if (fd < 0 && errno == ENOENT && walk->makes && mkdirat(walk->folder, name, 0700) == 0)
		fd = openat(walk->folder, name, flags);
	if (fd < 0)
		return -errno;
	if (walk->folder >= 0)
		(void)close(walk->folder); /* only a place */
	walk->folder = fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	walk->is_shared = st.st_mode & (S_IWGRP | S_IWOTH);
	walk->owner = st.st_uid;
	return user_file_is_others(walk, st.st_uid) ? USER_FILE_OTHERS : 0;
}

/* Whether somebody else has put this into the folder. */
static bool user_file_is_foreign(const struct user_file_walk *walk, const struct stat *st)
{
	if (!walk->is_shared)
		return false;
	if (st->st_uid != geteuid() && st->st_uid != walk->owner && st->st_uid != 0)
		return true;
	/* A file of ours under another name, which anybody could give it. */
	return S_ISREG(st->st_mode) && st->st_nlink > 1;
}

/* Links of /proc are no paths: the kernel alone can follow them. */
static bool user_file_is_magic(const struct user_file_walk *walk)
{
	struct statfs fs;

	return fstatfs(walk->folder, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Puts what the link @name says in front of the rest. */
static int user_file_follow(struct user_file_walk *walk, const char *name, const char *rest)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(walk->folder, name, target, sizeof(target));
	size_t left = strlen(rest);

	if (length < 0)
		return -errno;
	if (++walk->links > USER_FILE_LINKS)
		return -ELOOP;
	if ((size_t)length + left + 2 > sizeof(walk->rest))
		return -ENAMETOOLONG;
	/* @rest lies in walk->rest. */
	memmove(walk->rest + length + 1, rest, left + 1);
	memcpy(walk->rest, target, (size_t)length);
	walk->rest[length] = '/';
	if (left == 0)
		walk->rest[length] = '\0';
	return target[0] == '/' ? user_file_enter(walk, "/") : 0;
}

/* The last name of the path. */
static int user_file_open_last(const struct user_file_walk *walk, const char *name, int flags,
			       mode_t mode)
{
	CLEANUP_CLOSE int fd = -1;
	struct stat st;

	/* Looked at before, because opening another one's FIFO may take for ever. */
	if (fstatat(walk->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    user_file_is_foreign(walk, &st))
		return USER_FILE_FOREIGN;
	/* Not truncated before it is known whose it is. */
	fd = openat(walk->folder, name, (flags & ~O_TRUNC) | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
		    mode);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (user_file_is_foreign(walk, &st))
		return USER_FILE_FOREIGN;
	if (flags & O_TRUNC && S_ISREG(st.st_mode) && ftruncate(fd, 0) < 0)
		return -errno;
	return cleanup_steal_fd(&fd);
}

/* A name on the way: follows a link, enters a folder. Return: 0 or a negative errno. */
static int user_file_pass(struct user_file_walk *walk, const char *name, const char *rest)
{
	struct stat st;
	int r;

	if (fstatat(walk->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		return user_file_is_foreign(walk, &st) ? USER_FILE_FOREIGN
						       : user_file_follow(walk, name, rest);
	r = user_file_enter(walk, name);
	if (r == 0)
		memmove(walk->rest, rest, strlen(rest) + 1);
	return r;
}

/* Cuts the first name off the rest. Return: what follows it; empty after the last. */
static char *user_file_cut(struct user_file_walk *walk, char **ret_name, bool *ret_is_folder)
{
	char *name = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(name, "/");
	char *rest = name + length + strspn(name + length, "/");

	*ret_is_folder = name[length] || length == 0;
	name[length] = '\0';
	*ret_name = name;
	return rest;
}

/* One name of the path. Return: a descriptor if it was the last, -EAGAIN if not, or the failure. */
static int user_file_step(struct user_file_walk *walk, int flags, mode_t mode)
{
	bool is_folder, is_last;
	char *name, *rest = user_file_cut(walk, &name, &is_folder);
	struct stat st;
	int r;

	is_last = !*rest;
	/* A folder, and an error that says so. */
	if (is_last && is_folder)
		return -EISDIR;
	if (is_last) {
		if (fstatat(walk->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISLNK(st.st_mode))
			return user_file_open_last(walk, name, flags, mode);
		if (!user_file_is_foreign(walk, &st) && user_file_is_magic(walk)) {
			r = openat(walk->folder, name, (flags & ~O_CREAT) | O_NOCTTY | O_CLOEXEC);
			return r < 0 ? -errno : r;
		}
	}
	r = user_file_pass(walk, name, rest);
	return r < 0 ? r : -EAGAIN;
}

static int user_file_begin(struct user_file_walk *walk, const char *path)
{
	walk->folder = -1;
	if (strlen(path) >= sizeof(walk->rest))
		return -ENAMETOOLONG;
	memcpy(walk->rest, path, strlen(path) + 1);
	walk->folder = AT_FDCWD;
	return user_file_enter(walk, *path == '/' ? "/" : ".");
}

/* @flags: for openat(). */
static int user_file_walk_to(struct user_file_walk *walk, const char *path, int flags, mode_t mode)
{
	int r = user_file_begin(walk, path);

	while (r >= 0 || r == -EAGAIN) {
		r = user_file_step(walk, flags, mode);
		if (r != -EAGAIN)
			break;
	}
	if (walk->folder >= 0)
		(void)close(walk->folder); /* only a place */
	return r;
}

int user_file_open(const char *path, int flags, mode_t mode)
{
	struct user_file_walk walk = {.folder = -1};
	int number = user_file_number(path), r;

	if (number >= 0) {
		r = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		return r < 0 ? -errno : r;
	}
	return user_file_walk_to(&walk, path, flags | O_WRONLY | O_CREAT, mode);
}

int user_file_open_own(const char *path, int flags, mode_t mode)
{
	struct user_file_walk walk = {.folder = -1, .is_own = true, .makes = flags & O_CREAT};

	return user_file_walk_to(&walk, path, flags | O_NONBLOCK, mode);
}

/* Takes the last name off the rest of the path. */
static int user_file_take_name(struct user_file_walk *walk, char ret_name[NAME_MAX + 1])
{
	size_t end = strlen(walk->rest), begin;

	while (end > 0 && walk->rest[end - 1] == '/')
		end--;
	walk->rest[end] = '\0';
	for (begin = end; begin > 0 && walk->rest[begin - 1] != '/';)
		begin--;
	if (end - begin > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_name, walk->rest + begin, end - begin + 1);
	walk->rest[begin] = '\0';
	return !*ret_name || strcmp(ret_name, ".") == 0 || strcmp(ret_name, "..") == 0 ? -EINVAL
										       : 0;
}

int user_file_open_parent(const char *path, char ret_name[NAME_MAX + 1])
{
	struct user_file_walk walk = {.folder = -1};
	int r = user_file_begin(&walk, path);

	if (r == 0)
		r = user_file_take_name(&walk, ret_name);
	while (r == 0 && walk.rest[strspn(walk.rest, "/")]) {
		bool is_folder;
		char *name, *rest = user_file_cut(&walk, &name, &is_folder);

		r = user_file_pass(&walk, name, rest);
	}
	if (r == 0)
		return walk.folder;
	if (walk.folder >= 0)
		(void)close(walk.folder); /* only a place */
	return r;
}

const char *user_file_error(int error)
{
	if (error == USER_FILE_FOREIGN)
		return "another user has put it, or a link on the way to it, into a folder that "
		       "others may write to";
	if (error == USER_FILE_OTHERS)
		return "it is in another user's folder";
	if (error == -EBADMSG)
		return "damaged: what is in it cannot be true";
	return strerrordesc_np(-error);
}
