/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Books that an earlier ttmem-legacy has kept, which ttmemd hands over at the start. They wait until the server has its
 * connections back, and are then continued.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct legacy_left_book;
struct legacy_server;
struct scan_book;

/* All zero: none. */
struct legacy_left {
	struct legacy_left_book *list;
	size_t count, capacity;
};

/* Takes book and pidfd (-1 = the process has ended). */
void legacy_left_add_consume(struct legacy_left *left, struct scan_book *book, int pid_fd);

/* Its living clients have a book as before; of one that has ended, what is still in its connection counts. */
void legacy_left_continue(struct legacy_left *left, struct legacy_server *server);
void legacy_left_deinit(struct legacy_left *left);

/* Whether that process is another ttmem-legacy: one that a ttmemd has started that was killed goes on. */
bool legacy_left_is_another(uint32_t pid);
