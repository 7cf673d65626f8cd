/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The surroundings of a case of the test runner: its folder, its environment, its output, and the
 * search for what it left behind (descriptors, processes).
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The descriptors that a process has open at one moment. */
struct unit_fds;

struct unit_fds *unit_fds_new(void);
struct unit_fds *unit_fds_free(struct unit_fds *fds);

/*
 * Compares two lists, of which the second may have @more additional entries. Prints every
 * difference if they do not match. Return: whether they do.
 */
bool unit_fds_compare(const struct unit_fds *before, const struct unit_fds *after, int more);

/* A new empty folder. Return: its path, or NULL with errno set. */
char *unit_sweep_folder_new(void);

/* Removes the folder with everything in it. Return: NULL. */
char *unit_sweep_folder_free(char *folder);

/* Makes the environment of a case: only @folder, and no setting of the caller's shell. */
void unit_sweep_environment(const char *folder);

/* A nameless file for what a case prints. Return: descriptor, or -1 with errno set. */
int unit_sweep_output_new(const char *folder);

/* Copies what a case printed to stdout, indented. */
void unit_sweep_show(int output);

/* The last line that a case printed, cut to @size. */
void unit_sweep_last_line(int output, char *ret_line, size_t size);

/* Kills @group and every child that the runner has, and waits until they are gone. */
void unit_sweep_children(pid_t group);
