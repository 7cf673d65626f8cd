/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* This process's identity in a book's header, so that no other process is mistaken for it. */

#include <stdbool.h>

#include "book/write/writer.h"

#define IDENTITY_CMDLINE 1024

/*
 * @cmdline: memory for the command line, to which the identity then points. Never fails: what
 *   cannot be read stays 0, and such a book can only be found by being handed over.
 */
void identity_read(struct writer_identity *ret_identity, char cmdline[IDENTITY_CMDLINE]);

/*
 * Whether this process runs in another one's memory: it is a vfork() child, and the parent waits
 * until it ends. False where the kernel has no kcmp().
 */
bool identity_is_borrowed(void);

/* Field 22 of a line of /proc/PID/stat; 0 if the line is malformed. The name may contain ") ". */
uint64_t identity_start_ticks(const char *stat_line);
