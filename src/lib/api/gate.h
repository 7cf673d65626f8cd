/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The gate: one word that every call reads first. It says that tracking is off, not yet decided, or
 * must take the slow path (paused, debugging, stacks); otherwise it is the writer of this process's
 * book.
 *
 * The word has a page to itself, which the kernel wipes in a forked child (MADV_WIPEONFORK): the
 * child reads "not yet decided" and makes its own book at its first event, and no fork handler is
 * needed. A vfork child shares the address space, hence the page and the book. If there is no book
 * yet it makes none: its events are missed.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/threads/lock.h"

struct writer;

/* At least the kernel's page size, which on aarch64 may be any of three. */
#if defined(__x86_64__)
#define GATE_PAGE 4096
#else
#define GATE_PAGE 65536
#endif

/* Values of the word below the address of any writer. */
enum gate_word {
	GATE_UNDECIDED = 0,
	GATE_OFF = 1,
	GATE_SLOW = 2,   /* there is a writer, but check paused, debug and stacks first */
	GATE_STACKS = 3, /* there is a writer; nothing is special but that stacks are wanted */
	GATE_LAST = 15,
};

struct gate {
	uintptr_t word;
	struct writer *writer; /* NULL until there is a book */
	uint32_t instance;     /* differs between a process and its forked children */
	uint32_t phase;        /* string id of the process's phase */
	struct lock lock;      /* private to gate.c: taken to decide, pause or set a phase */
	uint32_t missed;       /* events of threads that gave up waiting for the lock */
	uint32_t sandbox;      /* from sandbox_open(), for the first event; 0 = none */
	bool is_checked;       /* whether system calls may be made */
} __attribute__((aligned(GATE_PAGE)));

extern struct gate gate_current;

/* Decides, and makes the book if tracking is on. NULL if there is none. Preserves errno. */
struct writer *gate_open(void);

/* When the program starts, before it can have forbidden system calls: what the first event must know. */
void gate_prepare(void);

void gate_pause(void);
void gate_resume(void);
bool gate_is_paused(void);

/* The process's phase, kept as text so that a forked child can name it in its own book. */
void gate_set_phase(const char *text);

/* Likewise the frames that stand for no stack. */
void gate_set_skip_frames(const char *text);

/* Likewise why the figures cannot be relied on any more, if they could until now: it stays for good. */
void gate_set_gave_up(const char *text);

/* NULL: they can. */
const char *gate_gave_up(void);

static inline uintptr_t gate_word(void)
{
	/* Pairs with the release in gate_publish(): the writer is seen fully initialized. */
	return __atomic_load_n(&gate_current.word, __ATOMIC_ACQUIRE);
}

/* The whole cost of a call while tracking is off. */
static inline bool gate_is_off(void)
{
	return __atomic_load_n(&gate_current.word, __ATOMIC_RELAXED) == GATE_OFF;
}

/* The writer if there is one, whatever the word says; never creates one. */
static inline struct writer *gate_peek(void)
{
	uintptr_t word = gate_word();

	if (word == GATE_SLOW || word == GATE_STACKS)
		return gate_current.writer;
	return word > GATE_LAST ? (struct writer *)word : NULL;
}

static inline uint32_t gate_phase(void)
{
	return __atomic_load_n(&gate_current.phase, __ATOMIC_RELAXED);
}
