/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The gate: one word that every call reads first. It says whether tracking is off, not yet decided, in
 * need of the slow way (paused, or debugging), or else it is the writer of this process's book.
 *
 * Once there is a book the word lies in a page that the kernel wipes in a forked child
 * (MADV_WIPEONFORK): the child reads "not yet decided" and makes a book of its own at its first event,
 * and nothing has to be registered with fork(). A vfork child shares the page, because it shares the
 * address space, and so it shares the book.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

struct writer;

/* Values of the word below the address of any writer. */
enum gate_word {
	GATE_UNDECIDED = 0,
	GATE_OFF = 1,
	GATE_SLOW = 2, /* there is a writer, but look at paused and debug first */
	GATE_LAST = 15,
};

struct gate {
	uintptr_t word;
	struct writer *writer; /* behind GATE_SLOW */
	uint32_t instance;     /* differs between a process and its forked children */
	uint32_t phase;        /* string id of the process's phase */
};

/* Points to a static one until there is a book. */
extern struct gate *gate_current;

/* Decides, and if tracking is on makes the book. NULL if there is none. Sets no errno. */
struct writer *gate_open(void);

/* The writer if there is one, whatever the word says; does not make one. */
struct writer *gate_peek(void);

void gate_pause(void);
void gate_resume(void);
bool gate_is_paused(void);

/* The process's phase, kept as text so that a forked child can name it in its own book. */
void gate_set_phase(const char *text);

static inline uintptr_t gate_word(void)
{
	return __atomic_load_n(&gate_current->word, __ATOMIC_ACQUIRE);
}
