/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * For the tests of ttmem.ko: the ioctls with everything right, so that a test changes the one thing that
 * it is about. Helpers assert: a test that cannot even begin has failed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uapi/ttmem.h>

#define NODE_BOOK_SIZE (UINT64_C(16) << 20)
#define NODE_SHARDS UINT64_C(0x200000)
#define NODE_SHARD_SIZE UINT64_C(0x2000)

/* A book as a process has it: descriptor, mapping. */
struct node_book {
	int fd;
	uint64_t id;
	uint8_t *base;
	size_t size;
};

int node_open(void);

/* 0 or a negative errno, of any ioctl. */
int node_ioctl(int fd, unsigned long command, void *args);

/* Makes and maps a book. */
void node_make_book(struct node_book *ret_book);
void node_drop_book(struct node_book *book);

int node_reserve(int fd, uint64_t offset, uint64_t length);

/* The descriptor, or a negative errno. */
int node_attach(uint64_t id, pid_t pid);

/* Counters of a device, written as a library would: one block of the pair. Reserves what it needs. */
void node_write(struct node_book *book, uint32_t device, uint32_t type, uint64_t bytes,
		uint64_t buffers);

int node_alloc(int node, uint32_t device, uint32_t type, uint64_t address, uint64_t size);
int node_free(int node, uint32_t device, uint32_t type, uint64_t address);

/* Sums of a device over everybody, from /proc/driver/ttmem/totals. */
void node_totals(uint32_t device, uint64_t *ret_bytes, uint64_t *ret_buffers);

/* The same of one process. False if it has no line. */
bool node_totals_of(pid_t pid, uint64_t *ret_bytes, uint64_t *ret_buffers);

/* A whole file of /proc as text; valid until the next call. */
const char *node_text(const char *path);

/*
 * Where the library has mapped this process's book: in one piece, though perhaps not all of it with the same
 * rights. Return: its size.
 */
uint64_t node_find_mapping(uintptr_t *ret_start, uintptr_t *ret_end);

/* Tries for a while: the end of a process is told a moment after its parent knows. */
bool node_becomes(uint32_t device, uint64_t bytes, uint64_t buffers);
