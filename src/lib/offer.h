/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Offering the book, once: to every socket in TTMEM_OFFER (set by `ttmem run`), then to the daemon.
 * Nothing is awaited; whoever is not there finds the book under /proc or does without.
 */

/* @pid: this process. */
void offer_book(int book_fd, int pid);

/*
 * Tells the daemon, if it took the book, that an allocation has failed, so that it can see who holds
 * the memory while they hold it. Not a cancellation point.
 */
void offer_tell_failed(void);
