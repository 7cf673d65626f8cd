/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a stack frame is gone for good, by evidence that a live frame cannot give.
 *
 * A frame that is to be recognised contains a mark: a word that keeps its value for as long as the
 * frame exists. If the word has changed, the frame is gone: nothing else writes to the memory of a live
 * frame, on whichever stack it is (the thread's own, an alternate signal stack, that of a fiber), and
 * whether its thread runs, sleeps, is stopped or is inside a signal handler. The converse does not hold:
 * memory that nobody has used since keeps the mark. Comparing stack pointers would find these, too, but
 * is wrong where a signal stack or a fiber's stack is part of an older frame.
 */

#include <stdbool.h>
#include <stdint.h>

struct lock;

/* Whether the word at @mark, which need not be readable, is known not to be @value. */
bool lock_mark_is_gone(const uint32_t *mark, uint32_t value);

/*
 * Whether the named holder will never drop the lock: its mark is gone, or its thread is. @home as for
 * lock_take_slow(). Return: if so, what the lock contains (both); 0 = there is no evidence.
 */
uint64_t lock_is_left(const struct lock *lock, uint32_t home);

/* Takes the lock from that holder. False if it has changed hands meanwhile. */
bool lock_take_from(struct lock *lock, uint64_t left);
