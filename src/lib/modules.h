/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files that are loaded in this process, and their ids in its book: from an address of code to module
 * and offset. The loader is asked when a stack is seen for the first time, or when one of the files in it has
 * been replaced; it says how many files were ever loaded and unloaded, so most of the time it is asked
 * nothing else.
 *
 * The loader must not be asked from inside of itself (a constructor, a callback of dl_iterate_phdr) nor
 * from a signal handler that may have interrupted it. modules_is_delicate() knows such a place by the
 * addresses that calls return to.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "book/layout.h"

struct writer;

/* Once for each book, before anybody else can be inside: what is known of another book is forgotten. */
void modules_open(void);

/*
 * In a forked child: the loader's list is not asked for again, neither here nor in its children. A thread that
 * this process does not have may have been inside it, and have taken its lock along. Files are then looked up
 * one by one, if libc has a way without locks, otherwise there are no frames.
 */
void modules_freeze(void);

/* Rises whenever addresses may have changed their meaning. */
uint32_t modules_generation(void);

/* Whether a return to @address is one into this library. */
bool modules_is_own(uintptr_t address);

/* Whether one of the returns is into the loader, or out of a signal handler. */
bool modules_is_delicate(const uintptr_t *addresses, size_t count);

/* Whether all from @low up to @high is code of the loader. */
bool modules_is_loader_code(uintptr_t low, uintptr_t high);

/* Whether a return to @address is one into dl_iterate_phdr(). */
bool modules_is_callback(uintptr_t address);

/*
 * Where handlers of signals return to: on x86-64 a place in libc that the kernel is told with every
 * handler, elsewhere the kernel's own. 0 = not known: without any handler we are in none.
 */
uintptr_t modules_trampoline(void);

/* For how long frames mean what they did. */
struct modules_validity {
	uint32_t generation;
	bool is_fleeting; /* some are in a file of which it cannot be told: not to be remembered */
	uint64_t guards;  /* of the files that may be unloaded (lib/guard.h) */
	uint64_t
		first; /* that of the innermost frame's, which is there whatever the walk was like */
};

/*
 * Turns return addresses into frames, up to the first that is in no file. May wait for the loader.
 * @ret_validity: always set. Return: how many; none if the loader must not be asked.
 */
size_t modules_frames(struct writer *writer, const uintptr_t *addresses, size_t count,
		      struct book_frame *ret_frames, struct modules_validity *ret_validity);
