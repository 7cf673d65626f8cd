/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files that fit into a buffer of the caller: those of /proc and /sys, a token, a configuration. What
 * does not fit is cut, never allocated: many of these files are written by others.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

/**
 * small_file_read() - read a file as text
 * @folder: where @path begins, as for openat(); AT_FDCWD is the working directory
 * @size: of @ret_text, with room for the NUL that is put behind the text
 *
 * Does not wait for the other end of a pipe that somebody has put there.
 *
 * Return: the length, @size - 1 at most; or a negative errno, and then the text is empty.
 */
ssize_t small_file_read(int folder, const char *path, char *ret_text, size_t size);

/* The same of one that is open, also of a pipe, up to its end. It stays the caller's. */
ssize_t small_file_read_fd(int fd, char *ret_text, size_t size);

/* The first line, without its end. Return: its length, or a negative errno; -ENODATA if it is empty. */
ssize_t small_file_read_line(int folder, const char *path, char *ret_line, size_t size);

/* Writes all of it. 0 or a negative errno. */
int small_file_write_fd(int fd, const void *bytes, size_t length);

/* One that is longer, to be read line by line. NULL: errno says why. */
static inline FILE *small_file_stream(int folder, const char *path)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

	if (fd >= 0 && !file)
		(void)close(fd); /* nothing was read from it */
	return file;
}

/* The entries of a folder. NULL: errno says why. */
static inline DIR *small_file_list(int folder, const char *path)
{
	int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !listing)
		(void)close(fd); /* nothing was read from it */
	return listing;
}
