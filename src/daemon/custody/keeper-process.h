/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keeper itself: "ttmemd --keeper-process FD", which only a daemon runs. It reads no
 * configuration and shares no memory with the daemon that started it.
 */

#include <stdbool.h>

#define KEEPER_PROCESS_ARGUMENT "--keeper-process"
#define KEEPER_PROCESS_NAME "ttmem-keeper"

/*
 * How long books are held for a daemon that does not come back: a day, so that a crash at night can
 * be examined in the morning; not forever, because a held book keeps its memory.
 */
#define KEEPER_PROCESS_ALONE_S (24u * 60 * 60)

/* Whether the command line is a keeper's. Must be checked before anything else. */
bool keeper_process_is_meant(int argc, char *const *argv);

/* Return: the exit code. */
int keeper_process_main(int argc, char *const *argv);
