/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Owned locals are released when they go out of scope, on every path. A local is marked on its first
 * line and holds its empty value (NULL, -1) until it owns something; success steals it:
 *
 *	CLEANUP_CLOSE int fd = open(...);
 *	...
 *	*ret_fd = cleanup_steal_fd(&fd);
 */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

#define CLEANUP_FREE CLEANUP(cleanup_free)
#define CLEANUP_CLOSE CLEANUP(cleanup_close)
#define CLEANUP_FCLOSE CLEANUP(cleanup_fclose)
#define CLEANUP_CLOSEDIR CLEANUP(cleanup_closedir)

/* @pointer: address of a pointer of any kind. */
static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		(void)fclose(*file); /* callers that care have flushed before */
}

static inline void cleanup_closedir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir); /* fails only for an invalid stream */
}

static inline int cleanup_steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

#define cleanup_steal(pointer)                  \
	({                                      \
		__auto_type stolen = (pointer); \
		(pointer) = NULL;               \
		stolen;                         \
	})
