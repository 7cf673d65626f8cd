/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keeper itself: "ttmemd --keeper-process FD", which nobody but a daemon calls. It has read nothing of
 * the configuration and shares no memory with the daemon that started it.
 */

#include <stdbool.h>

#define KEEPER_PROCESS_ARGUMENT "--keeper-process"
#define KEEPER_PROCESS_NAME "ttmem-keeper"

/*
 * How long books are held for a daemon that does not come back: a day, so that what died in a night can
 * be asked for in the morning; not for ever, because a held book keeps its memory.
 */
#define KEEPER_PROCESS_ALONE_S (24u * 60 * 60)

/* Whether the command line is a keeper's. To be asked before anything else is done. */
bool keeper_process_is_meant(int argc, char *const *argv);

/* Return: the code to exit with. */
int keeper_process_main(int argc, char *const *argv);
