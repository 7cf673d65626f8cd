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
struct run_children;

struct run_children *run_children_new(void);
void run_children_free(struct run_children *run_children);

/* Looks for descendants of @root now. */
void run_children_look(struct run_children *run_children, const struct proc *proc, uint32_t root);

void run_children_has_book(struct run_children *run_children, uint32_t pid);
void run_children_ended(struct run_children *run_children, uint32_t pid, int status);

/* How a process that we reaped has ended; false if we did not. */
bool run_children_status(const struct run_children *run_children, uint32_t pid, int *ret_status);

uint32_t run_children_without_book(const struct run_children *run_children);
