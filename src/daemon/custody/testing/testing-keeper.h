/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For tests of the keeper: numbered files in place of books, each containing its number, and access
 * to the keeper's process. A program linked with this is its own keeper: called with
 * --keeper-process it becomes one before main().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/custody/keeper-wire.h"
#include "daemon/custody/keeper.h"

#define TESTING_KEEPER_BOOKS (KEEPER_BOOKS_MAX + 256u)

extern const struct keeper_hooks testing_keeper_hooks; /* for tests that need no other hooks */

struct testing_keeper_taken {
	uint32_t count;
	bool has[TESTING_KEEPER_BOOKS];
};

/*
 * Must be called first: orphans, and so keepers, become our children; forked children share the
 * book numbers.
 */
void testing_keeper_begin(void);

/* Waits until no child is left; the socket must be gone as well. */
void testing_keeper_end(void);

/* The keeper's socket, in the case's folder. */
const char *testing_keeper_path(void);

/* The only running keeper, as soon as there is one. */
pid_t testing_keeper_pid(void);

/* Creates a file as book @number; the caller closes it. */
int testing_keeper_book(uint32_t number, struct keeper_entry *ret_entry);

void testing_keeper_add(struct keeper *keeper, uint32_t number);
void testing_keeper_remove(struct keeper *keeper, uint32_t number);

/* A keeper_take_fn with a struct testing_keeper_taken: checks everything about the book. */
void testing_keeper_take(void *context, const struct keeper_entry *entry, int fd);

/* Opens another connection to the keeper. */
int testing_keeper_line(void);

/* Waits for the next message on it. Return: as keeper_wire_receive(). */
int testing_keeper_wait(int line, struct keeper_wire *ret_message, int *ret_fd);

/* Takes all held books; returns the END message. */
struct keeper_wire testing_keeper_list(int line);

/* Sends any bytes with any descriptors. */
void testing_keeper_send(int line, const void *bytes, size_t length, const int *fds, size_t count);

/* The ADD for a book. */
struct keeper_wire testing_keeper_message(const struct keeper_entry *entry);
