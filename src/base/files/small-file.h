/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files that fit into a caller's buffer: those of /proc and /sys, a token, a configuration. Longer
 * text is cut; nothing is allocated, because others control the size of many of these files.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

/**
 * small_file_read() - read a file as text
 * @folder: what @path is relative to, as for openat(); AT_FDCWD is the working directory
 * @size: of @ret_text, including the NUL that is appended
 *
 * If the path is a pipe, does not wait for its other end.
 *
 * Return: the length, @size - 1 at most; or a negative errno, and the text is empty.
 */
ssize_t small_file_read(int folder, const char *path, char *ret_text, size_t size);

/* The same for an open file or a pipe, up to end of file. The caller keeps @fd. */
ssize_t small_file_read_fd(int fd, char *ret_text, size_t size);

/*
 * Reads the first line without its newline. Returns its length, or a negative errno; -ENODATA if it
 * is empty.
 */
ssize_t small_file_read_line(int folder, const char *path, char *ret_line, size_t size);

/* Writes all bytes. Returns 0 or a negative errno. */
int small_file_write_fd(int fd, const void *bytes, size_t length);

/* Opens a longer file, to be read line by line. NULL with errno set. */
static inline FILE *small_file_stream(int folder, const char *path)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

	if (fd >= 0 && !file)
		(void)close(fd); /* nothing was read from it */
	return file;
}

/* Lists the entries of a folder. NULL with errno set. */
static inline DIR *small_file_list(int folder, const char *path)
{
	int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !listing)
		(void)close(fd); /* nothing was read from it */
	return listing;
}
