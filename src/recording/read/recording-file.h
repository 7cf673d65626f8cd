/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Opens the files of recordings, also those that the caller may not open by their name. */

/*
 * Gets a file that could not be opened at @path from elsewhere. Return: a descriptor for reading, or a negative
 * errno. NULL: there is nobody else; set once, before anything is opened.
 */
extern int (*recording_file_elsewhere)(const char *path);

/* Waits for no pipe. Return: a descriptor for reading, or -1 with errno set. */
int recording_file_open(const char *path);
