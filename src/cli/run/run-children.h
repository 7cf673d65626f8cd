/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The descendants of a command that were seen, with or without a book, to report how many never
 * handed over a book. We see those that are running when we look and those that we reap; we miss
 * one that exits sooner and is reaped by its own parent.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/ending.h"

struct proc;
struct run_children;

struct run_children *run_children_new(void);
void run_children_free(struct run_children *run_children);

/* Records the current descendants of @root. */
void run_children_look(struct run_children *run_children, const struct proc *proc, uint32_t root);

void run_children_has_book(struct run_children *run_children, uint32_t pid);
void run_children_ended(struct run_children *run_children, uint32_t pid, int status);

/* The exit status of a process that we reaped; false if we did not. */
bool run_children_status(const struct run_children *run_children, uint32_t pid,
			 struct ending *ending);

/* Those without a book that were seen with a device open or with tt-metal mapped: they should have one. */
uint32_t run_children_untracked(const struct run_children *run_children);

uint32_t run_children_without_book(const struct run_children *run_children);
