/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Shared by the tests of the server for the old protocol: a real server with loop, registry, worker
 * and log writer, clients in their own processes, and access to the resulting books.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "book/format/layout.h"
#include "daemon/registry/access.h"
#include "legacy/server/legacy-server.h"
#include "legacy/wire/legacy.h"

struct collector;
struct loop;
struct log_writer;
struct registry;
struct snapshot;
struct worker;

#define LEGACY_TESTING_ENDED 64u

/* An exited process, and its last state. */
struct legacy_testing_ended {
	uint32_t pid;
	uint64_t buffers;
	uint64_t bytes;
};

struct legacy_testing_world {
	struct loop *loop;
	struct log_writer *log_writer;
	struct worker *work;
	struct registry *registry;
	struct collector *collector;
	struct access access;
	struct legacy_server *server;
	char path[104];
	char output[104]; /* the log writer's file */
	struct legacy_testing_ended ended[LEGACY_TESTING_ENDED];
	size_t ended_count;
};

/* What a process holds of one type. */
struct legacy_testing_memory {
	uint64_t bytes;
	uint64_t buffers;
	uint64_t allocs, frees;
	uint64_t unknown_frees, double_frees, size_changes, realloc_live;
};

/* @config: only its flags are used; NULL = none. */
void legacy_testing_open(struct legacy_testing_world *world, const struct legacy_config *config);
void legacy_testing_close(struct legacy_testing_world *world);

/* Turns the loop until @is_so returns true; fails the test after half a minute. */
typedef bool legacy_testing_fn(struct legacy_testing_world *world, void *context);
void legacy_testing_until(struct legacy_testing_world *world, legacy_testing_fn *is_so,
			  void *context);
void legacy_testing_until_messages(struct legacy_testing_world *world, uint64_t count);
void legacy_testing_until_ended(struct legacy_testing_world *world, size_t count);

struct legacy_counts legacy_testing_counts(const struct legacy_testing_world *world);

/* Memory of a process on a device, type @type or BOOK_TYPES for all; pid 0 = of all live ones. */
struct legacy_testing_memory legacy_testing_look(struct legacy_testing_world *world, uint32_t pid,
						 uint32_t device, uint32_t type);

/* All books, with buffers and incidents; the caller frees it. */
struct snapshot *legacy_testing_snapshot(struct legacy_testing_world *world);

/* Whether the log writer has written @text so far. */
bool legacy_testing_printed(struct legacy_testing_world *world, const char *text);
void legacy_testing_until_printed(struct legacy_testing_world *world, const char *text);

/* Clients; may also be used in a child. */
int legacy_testing_connect(const char *path);
void legacy_testing_send(int fd, enum legacy_dialect dialect, const struct legacy_message *message);
void legacy_testing_send_bytes(int fd, const void *bytes, size_t length);

/* As a client in this process would send it. */
struct legacy_message legacy_testing_alloc(int32_t device, uint8_t type, uint64_t id,
					   uint64_t size);
struct legacy_message legacy_testing_free(int32_t device, uint64_t id);
void legacy_testing_text(struct legacy_message *message, const char *name, const char *stack);
struct legacy_message legacy_testing_ask(enum legacy_type type, int32_t device);

/* Receives exactly @length bytes while the loop turns. */
void legacy_testing_receive(struct legacy_testing_world *world, int fd, void *bytes, size_t length);

/* A child that runs @main with its own connection, then waits to be killed unless @main exits. */
pid_t legacy_testing_child(const struct legacy_testing_world *world, void (*main)(int fd));
void legacy_testing_kill(pid_t pid);
