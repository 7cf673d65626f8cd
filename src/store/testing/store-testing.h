/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Shared by the tests of the store: a clock and faults that the tests control, and snapshots. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/snapshot.h"
#include "store/store.h"

#define TESTING_S NS_PER_S
#define TESTING_START (UINT64_C(1700000040) * TESTING_S) /* some day in 2023, a full minute */
#define TESTING_WAIT_MS 120000u                          /* for things that take almost no time */

/* All fields are atomic: the writer's thread reads them. */
struct testing_world {
	uint64_t real_ns, boot_ns;
	int fault;      /* the SQLite code to fail with */
	int fault_step; /* enum store_step */
	int fault_times;
	bool held; /* the writer is paused */
	char folder[256];
	struct store_config config;
	struct store *store;
};

/* A store in an empty folder of the test's own. */
void testing_init(struct testing_world *world);
void testing_open(struct testing_world *world);
void testing_close(struct testing_world *world);
void testing_reopen(struct testing_world *world);
void testing_flush(struct testing_world *world);

/* Lets time pass, or sets the clock without time passing. */
void testing_pass(struct testing_world *world, uint64_t ns);
void testing_set_clock(struct testing_world *world, uint64_t real_ns);

void testing_hold(struct testing_world *world, bool held);
void testing_fault(struct testing_world *world, enum store_step step, int code, int times);
struct store_health testing_health(struct testing_world *world);

/* Waits until the store can write, or cannot: it retries at its own pace. */
void testing_wait(struct testing_world *world, bool running);
void testing_sleep(long ms);

/* Creates a file. */
void testing_write(const char *path, const void *bytes, size_t length);

/* Path of a file in the folder; valid until the next call. */
const char *testing_path(const struct testing_world *world, const char *name);

/* The number of files that were set aside. */
unsigned int testing_count_aside(const struct testing_world *world);

/* Runs SQL on the file with a separate connection, and returns the resulting number. */
int64_t testing_sql(const struct testing_world *world, const char *sql);

/* Processes of user 1000 called "train", alive, with a device 0 of the unique id 0xabc. */
struct snapshot *testing_snapshot(uint64_t time_ns);
uint32_t testing_process(struct snapshot *snapshot, uint32_t pid, const char *comm);
void testing_memory(struct snapshot *snapshot, uint32_t process, uint32_t device, uint32_t type,
		    uint64_t used, uint64_t buffers);
void testing_buffer(struct snapshot *snapshot, uint32_t process, uint8_t type, uint64_t address,
		    const char *name, const char *phase);

/* Makes it a process of that user, in the daemon's namespaces. */
void testing_set_user(struct snapshot *snapshot, uint32_t process, uint32_t uid);

/* An asker who sees what *@uid has there. */
struct store_sees testing_sees(const uint32_t *uid);

/* Stores the leak of a new process: one buffer of 4096 bytes. */
void testing_put_leak(struct testing_world *world, uint32_t pid, const char *name);

/* The number of rows. */
uint64_t testing_count_leaks(struct testing_world *world);
uint64_t testing_count_sites(struct testing_world *world);
