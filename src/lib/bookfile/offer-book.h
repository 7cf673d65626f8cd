/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Offers the book, once: to every socket in TTMEM_OFFER (set by `ttmem run`), then to the daemon.
 * There is no reply; a daemon that is not running yet finds the book later under /proc.
 */

/* @pid: this process. */
void offer_book(int book_fd, int pid);

/*
 * Notifies the daemon, if it received the book, that an allocation has failed, so that it can see
 * which processes hold the memory at that moment. Not a cancellation point.
 */
void offer_book_tell_failed(void);
