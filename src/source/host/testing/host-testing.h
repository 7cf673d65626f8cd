/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fake machine made of files, for the tests of driver and regions; in the test case's own folder.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;

/* Points the environment to three empty folders: proc, sys and shm. */
void host_testing_start(void);

/* Writes a file and creates its folders; @path is relative to the test case's folder. */
void host_testing_write(const char *path, const void *bytes, size_t length);
void host_testing_text(const char *path, const char *text);

/* A process of the user that runs the tests, started @age_s seconds ago. */
void host_testing_process(uint32_t pid, const char *comm, uint64_t age_s);

/* A finished snapshot of it by collect_machine(), without books. */
struct snapshot *host_testing_look(void);

/* Bytes of DRAM on all of its devices. */
uint64_t host_testing_total(const struct snapshot *snapshot);

/* One of tt-metal's regions, put together here before it is parsed or written to a file. */
#define HOST_TESTING_NARROW 8576u /* its size */
#define HOST_TESTING_WIDE 9280u   /* of version 1 */

extern unsigned char host_testing_bytes[HOST_TESTING_WIDE];

bool host_testing_is_wide(uint32_t version);
void host_testing_put32(size_t at, uint32_t value);
void host_testing_put64(size_t at, uint64_t value);

/* An empty one, as tt-metal creates it. */
void host_testing_region(uint32_t version, uint64_t id, uint32_t device);

/* The row of a process; its DRAM is also the total. */
void host_testing_row(uint32_t version, size_t slot, uint32_t pid, uint64_t dram, uint64_t stamp);
