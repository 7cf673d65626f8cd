/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Opening a book that somebody else held: of its owner only pid and start time are known. */

#include <stdint.h>

struct proc;
struct scan_book;

/* Takes the fd in any case. 0 or a negative errno, -EBADMSG if it is no book. */
int registry_open_consume(const struct proc *proc, int fd, uint32_t pid, uint64_t start_ticks,
			  struct scan_book **ret_book);
