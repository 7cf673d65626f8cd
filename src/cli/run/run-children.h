/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The descendants of a command that were seen, with or without a book: to say how many of them never
 * reported anything. Seen are those that were there when we looked and those that we reaped; one that
 * lived shorter and was reaped by its own parent goes unseen.
 */

#include <stdbool.h>
#include <stdint.h>

struct proc;
struct seen;

struct seen *seen_new(void);
void seen_free(struct seen *seen);

/* Looks for descendants of @root now. */
void seen_look(struct seen *seen, const struct proc *proc, uint32_t root);

void seen_has_book(struct seen *seen, uint32_t pid);
void seen_ended(struct seen *seen, uint32_t pid, int status);

/* How a process that we reaped has ended; false if we did not. */
bool seen_status(const struct seen *seen, uint32_t pid, int *ret_status);

uint32_t seen_without_book(const struct seen *seen);
