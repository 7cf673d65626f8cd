/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The process that shows a recording in a browser: "ttmemd --playback FILE AT USER", started only by
 * "ttmem report --serve". It serves HTTP on a free port of this machine to browsers that sign in with
 * a link, and to nobody else. For each line that comes on descriptor 3, it writes such a link there,
 * for the browser of USER (a number). At the end of file it ends.
 *
 * AT is the moment that the links lead to, as "--at" takes it; "" = the peak.
 */

#include <stdbool.h>

#define PLAYBACK_PROCESS_ARGUMENT "--playback"

/* Whether this command line starts such a process. */
bool playback_process_is_meant(int argc, char *const *argv);

/* Errors are told on standard error. Return: the exit code. */
int playback_process_main(int argc, char *const *argv);
