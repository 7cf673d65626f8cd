/* SPDX-License-Identifier: Apache-2.0 */

/* Inspects a file with O_PATH before opening it. */

#include "symbol/symbolizer-open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbol/mapped-file.h"
#include "symbol/symbolizer.h"
#include "symbol/user-path.h"

#define OPEN_PATH_SIZE 4096
#define OPEN_DEBUG "/usr/lib/debug"

/* The user whose permissions are checked; 0 leaves the check to the kernel. */
static uint32_t open_user(const struct symbolizer_config *config,
			  const struct symbolizer_module *module)
{
	return config->own_rights ? 0 : module->user;
}

static int open_check(int seen, const struct stat *file, uint32_t user)
{
	if (!S_ISREG(file->st_mode))
		return -EINVAL;
	if ((uint64_t)file->st_size > RESOLVE_FILE_MAX)
		return -EFBIG;
	return user_path_check(seen, user, USER_PATH_READ);
}

/* Paths of a process in another mount namespace are relative to its root. */
static int open_root(uint32_t pid, int *ret_fd)
{
	char path[64] = "/";

	if (pid)
		(void)snprintf(path, sizeof(path), "/proc/%u/root", pid);
	*ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}

/* @user: whose right to search the folders on the way counts; 0 = ours. */
static int open_look(uint32_t pid, uint32_t user, const char *path, int *ret_fd)
{
	CLEANUP_CLOSE int root = -1;
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_IN_ROOT};
	int r = open_root(pid, &root);

	if (r < 0)
		return r;
	if (path[0] != '/')
		return -EINVAL;
	if (user)
		return user_path_open(root, path, user, ret_fd);
	*ret_fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return *ret_fd < 0 ? -errno : 0;
}

/* Opens the file behind an O_PATH descriptor, if @user may read it. */
static int open_seen(int seen, uint32_t user, int *ret_fd, struct stat *ret_file)
{
	CLEANUP_CLOSE int fd = -1;
	char number[64];
	struct stat file;
	int r;

	if (fstat(seen, &file) < 0)
		return -errno;
	r = open_check(seen, &file, user);
	if (r < 0)
		return r;
	(void)snprintf(number, sizeof(number), "/proc/self/fd/%d", seen);
	fd = open(number, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret_file) < 0)
		return -errno;
	*ret_fd = cleanup_steal_fd(&fd);
	return 0;
}

static int open_file(uint32_t pid, uint32_t user, const char *path, int *ret_fd,
		     struct stat *ret_file)
{
	CLEANUP_CLOSE int seen = -1;
	int r = open_look(pid, user, path, &seen);

	return r < 0 ? r : open_seen(seen, user, ret_fd, ret_file);
}

static struct symbolizer_identity open_identity(const struct stat *file)
{
	return (struct symbolizer_identity){
		.device = file->st_dev,
		.inode = file->st_ino,
		.size = (uint64_t)file->st_size,
		.changed_s = (uint64_t)file->st_ctim.tv_sec,
		.changed_ns = (uint64_t)file->st_ctim.tv_nsec,
	};
}

/* A file in a folder that is closed to the user, if the process has this very file mapped. */
static int open_mapped(const struct symbolizer_module *module, int *ret_fd, struct stat *ret_file)
{
	CLEANUP_CLOSE int seen = -1;
	struct stat file;
	int r = open_look(module->process.pid, 0, module->path, &seen);

	if (r < 0)
		return r;
	if (fstat(seen, &file) < 0 || !mapped_file_has(module->process, module->user, &file))
		return -EACCES;
	return open_seen(seen, module->user, ret_fd, ret_file);
}

int symbolizer_open_module(const struct symbolizer_config *config,
			   const struct symbolizer_module *module, int *ret_fd,
			   struct symbolizer_identity *ret_identity)
{
	struct stat file;
	int r = open_file(module->process.pid, open_user(config, module), module->path, ret_fd,
			  &file);

	if (r == -EACCES && module->process.pid && open_user(config, module))
		r = open_mapped(module, ret_fd, &file);
	if (r == 0)
		*ret_identity = open_identity(&file);
	return r;
}

int symbolizer_open_held(const struct symbolizer_config *config,
			 const struct symbolizer_module *module, int seen, int *ret_fd,
			 struct symbolizer_identity *ret_identity)
{
	struct stat file;
	int r = open_seen(seen, open_user(config, module), ret_fd, &file);

	if (r == 0)
		*ret_identity = open_identity(&file);
	return r;
}

int symbolizer_open_loaded(const struct symbolizer_config *config,
			   const struct symbolizer_module *module, int *ret_fd,
			   struct symbolizer_identity *ret_identity)
{
	CLEANUP_CLOSE int seen = -1;
	int r = module->process.pid
			? mapped_file_look(module->process, module->path, module->base, &seen)
			: -ENOENT;

	return r < 0 ? r : symbolizer_open_held(config, module, seen, ret_fd, ret_identity);
}

static int open_by_build_id(const struct symbolizer_config *config,
			    const struct symbolizer_module *module,
			    const struct symbolizer_hint *hint, int *ret_fd)
{
	const char *folder = config->debug_folder ? config->debug_folder : OPEN_DEBUG;
	char path[OPEN_PATH_SIZE], digits[2 * RESOLVE_BUILD_ID_MAX + 1];
	uint32_t user = open_user(config, module);
	struct stat file;
	int n, r;

	if (hint->build_id_length < 2 || hint->build_id_length > RESOLVE_BUILD_ID_MAX)
		return -ENOENT;
	for (size_t i = 0; i < hint->build_id_length; i++)
		(void)snprintf(digits + 2 * i, 3, "%02x", hint->build_id[i]); /* fits */
	n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", folder, digits, digits + 2);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	r = open_file(module->process.pid, user, path, ret_fd, &file);
	/* The build id proves that it is the right file, wherever it is. */
	if (r < 0 && module->process.pid)
		r = open_file(0, user, path, ret_fd, &file);
	return r;
}

/* Where debuggers look: beside the module, in .debug there, and below the global folder. */
static int open_by_link(const struct symbolizer_config *config,
			const struct symbolizer_module *module, const char *link, int *ret_fd)
{
	const char *folder = config->debug_folder ? config->debug_folder : OPEN_DEBUG;
	const char *const places[][2] = {{"", "/"}, {"", "/.debug/"}, {folder, "/"}};
	const char *slash = strrchr(module->path, '/');
	int length = slash ? (int)(slash - module->path) : 0;
	int r = -ENOENT;

	/* A bare file name only; a path could lead anywhere. */
	if (!link[0] || strchr(link, '/') || strcmp(link, "..") == 0 || strcmp(link, ".") == 0)
		return -ENOENT;
	for (size_t i = 0; r < 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		char path[OPEN_PATH_SIZE];
		struct stat file;
		int n = snprintf(path, sizeof(path), "%s%.*s%s%s", places[i][0], length,
				 module->path, places[i][1], link);

		if (n > 0 && (size_t)n < sizeof(path))
			r = open_file(module->process.pid, open_user(config, module), path, ret_fd,
				      &file);
	}
	return r;
}

int symbolizer_open_debug(const struct symbolizer_config *config,
			  const struct symbolizer_module *module,
			  const struct symbolizer_hint *hint, int *ret_fd)
{
	int r = open_by_build_id(config, module, hint, ret_fd);

	return r < 0 ? open_by_link(config, module, hint->link, ret_fd) : 0;
}
