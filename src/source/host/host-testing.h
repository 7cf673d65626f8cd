/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fake machine made of files, for the tests of driver and regions; in the test case's own folder.
 */

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
