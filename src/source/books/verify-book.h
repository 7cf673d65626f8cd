/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Verifies that a file is a book that can be read safely: nobody can shrink or grow it, and nothing
 * but its creator's mapping can write to it. A memory file needs seals for that; one of the kernel
 * module guarantees it. Its contents are checked by the reader.
 */

#include <stdbool.h>
#include <sys/stat.h>

/* Why a file is refused. */
enum verify_book_outcome {
	VERIFY_BOOK_NOT_A_FILE = 1,
	VERIFY_BOOK_HUGE_PAGES = 2,
	VERIFY_BOOK_NOT_MEMORY = 3,
	VERIFY_BOOK_NOT_SEALED = 4,
	VERIFY_BOOK_TOO_SMALL = 5,
	VERIFY_BOOK_TOO_LARGE = 6,
};

/*
 * Gets hold of a file without opening it: opening has side effects on devices, and the link that
 * led here may have been retargeted since it was read. Returns 0 and @ret_path_fd, a negative
 * errno, or an outcome.
 */
int verify_book_find(int folder, const char *name, int *ret_path_fd, struct stat *ret_stat);

/* Opens what verify_book_find() found, for reading. Returns 0, a negative errno, or an outcome. */
int verify_book_open(int path_fd, int *ret_fd);

/* The checks of verify_book_open() on an fd that is already open, e.g. one that was handed over. */
int verify_book_check(int fd);

/* Whether a book's file belongs to the kernel module, which cannot be unloaded while the file is open. */
bool verify_book_is_kernels(int fd);

/* A readable text for a result of these functions. */
const char *verify_book_strerror(int result);
