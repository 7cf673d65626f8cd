/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What proves a file to be a book that can be read without harm: that nobody can cut it short or let it
 * grow, and that nobody but its maker's mapping can write to it. A memory file has seals for that; one of
 * the kernel module's cannot be otherwise. What is in it is the reader's business.
 */

#include <sys/stat.h>

/* Why a file is refused. */
enum genuine_outcome {
	GENUINE_NOT_A_FILE = 1,
	GENUINE_HUGE_PAGES = 2,
	GENUINE_NOT_MEMORY = 3,
	GENUINE_NOT_SEALED = 4,
	GENUINE_TOO_SMALL = 5,
	GENUINE_TOO_LARGE = 6,
};

/*
 * Takes hold of a file without opening it: opening has side effects on devices, and the link that led
 * here may have been pointed elsewhere since it was read. 0 and @ret_path_fd, a negative errno, or an
 * outcome.
 */
int genuine_find(int folder, const char *name, int *ret_path_fd, struct stat *ret_stat);

/* Opens what genuine_find() found, for reading. 0, a negative errno, or an outcome. */
int genuine_open(int path_fd, int *ret_fd);

/* The checks of genuine_open() on an fd that is open already, e.g. handed over. */
int genuine_check(int fd);

/* For people: what a result of these functions means. */
const char *genuine_strerror(int result);
