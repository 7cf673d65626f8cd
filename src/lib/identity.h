/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Who this process is, as a book's header says it: so that no other process can be taken for it. */

#include <stdbool.h>

#include "book/writer.h"

#define IDENTITY_CMDLINE 1024

/* @cmdline: memory for the command line, which the identity then points to. Never fails: what cannot be
 * read is left 0, and such a book can only be found by being handed over. */
void identity_read(struct writer_identity *ret_identity, char cmdline[IDENTITY_CMDLINE]);

/*
 * Whether the memory that we run in is another process's: we are its vfork() child, and it waits until we are gone.
 * False where the kernel does not tell (kcmp()).
 */
bool identity_is_borrowed(void);

/* Field 22 of a line of /proc/PID/stat; 0 if it is no such line. The name may contain ") ". */
uint64_t identity_start_ticks(const char *stat_line);
