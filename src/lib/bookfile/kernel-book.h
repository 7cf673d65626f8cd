/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's books (ttmem.ko). Where its node can be opened, a process's book is in kernel memory
 * instead of a memfd: it ends with the address space, and everybody sees its totals under /proc.
 * Only creation and reservation differ; every event runs the same code on the same layout.
 */

#include <stdbool.h>
#include <stdint.h>

/* Whether the node can be opened, and TTMEM_KERNEL does not say 0. */
bool kernel_book_is_there(void);

/* A book's descriptor, or a negative errno. @room: in: wanted; out: granted. */
int kernel_book_make(uint64_t size, uint64_t *room, uint64_t *ret_id);

/* Another descriptor of our own book, for when the first one is lost. */
int kernel_book_attach(uint64_t id);

/* Reserves memory for whole pages of the book. 0 or a negative errno. */
int kernel_book_reserve(int fd, uint64_t offset, uint64_t length);
