/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What proves a file to be a book that can be read without harm: that nobody can cut it short or let it
 * grow, and that nobody but its maker's mapping can write to it. A memory file has seals for that; one of
 * the kernel module's cannot be otherwise. What is in it is the reader's business.
 */

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
 * Takes hold of a file without opening it: opening has side effects on devices, and the link that led
 * here may have been pointed elsewhere since it was read. 0 and @ret_path_fd, a negative errno, or an
 * outcome.
 */
int verify_book_find(int folder, const char *name, int *ret_path_fd, struct stat *ret_stat);

/* Opens what verify_book_find() found, for reading. 0, a negative errno, or an outcome. */
int verify_book_open(int path_fd, int *ret_fd);

/* The checks of verify_book_open() on an fd that is open already, e.g. handed over. */
int verify_book_check(int fd);

/* For people: what a result of these functions means. */
const char *verify_book_strerror(int result);
