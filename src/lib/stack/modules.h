/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files loaded in this process and their ids in its book: turns a code address into module and
 * offset. The loader is called when a stack is seen for the first time, or when one of its files
 * has been replaced. It reports how many files were ever loaded and unloaded, so most of the time
 * nothing else has to be read.
 *
 * The loader must not be called from inside itself (a constructor, a callback of dl_iterate_phdr)
 * nor from a signal handler that may have interrupted it. Such a place is recognized by the return
 * addresses; its files are looked up one by one, without the loader's lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/format/layout.h"

struct walk_found;
struct writer;

/* Once for each book, before other threads can use the module. Forgets another book's state. */
void modules_open(void);

/* Rises whenever addresses may belong to different files. */
uint32_t modules_generation(void);

/* Whether @address is a return address in this library. */
bool modules_is_own(uintptr_t address);

/*
 * Whether the thread with this stack may call functions that take locks of libc, such as malloc(): all of its
 * stack is known, no signal handler and nothing of the loader is in it, and no other thread was lost in a fork.
 */
bool modules_may_call(const struct walk_found *found);

/* For how long frames keep their meaning. */
struct modules_validity {
	uint32_t generation;
	bool is_fleeting; /* some are in a file that cannot be checked: do not cache */
	uint64_t guards;  /* of the files that may be unloaded (lib/stack/unload-guard.h) */
	uint64_t first; /* of the innermost frame, which is certain however the stack was walked */
};

/*
 * Turns the first @count return addresses into frames, up to the first that is in no file. May wait
 * for the loader. @ret_validity: always set. Return: how many; 0 if the loader must not be called.
 */
size_t modules_frames(struct writer *writer, const struct walk_found *found, size_t count,
		      struct book_frame *ret_frames, struct modules_validity *ret_validity);
