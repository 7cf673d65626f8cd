/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_QUERY_H
#define TTMEM_QUERY_H

/*
 * libttmem-query: who holds which device memory, for monitors. It is a library of its own (pkg-config:
 * ttmem-query), so that applications that only report their memory do not load it.
 *
 * The figures are those of `ttmem smi`: from the books of all processes that the caller may read, and with
 * a running ttmemd also from those of other users. The calling process itself is left out. Needs no
 * privileges, and holds a file descriptor for each book that it reads.
 *
 *     struct ttmem_query *query;
 *     struct ttmem_query_process process = {.struct_size = sizeof(process)};
 *
 *     if (ttmem_query_new(&query) == 0 && ttmem_query_refresh(query) == 0)
 *             for (size_t i = 0; ttmem_query_process(query, i, &process) == 0; i++)
 *                     printf("%u %s\n", process.pid, process.command);
 *     ttmem_query_free(query);
 *
 * One query is for one thread at a time. Every struct begins with its size, which the caller sets: rows of
 * older, shorter versions stay valid. Texts come from other processes: they are valid UTF-8, cut to fit,
 * and may contain anything that a terminal interprets.
 */

#include <stddef.h>
#include <stdint.h>

#include <ttmem/ttmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One kind of memory. */
struct ttmem_query_memory {
	uint64_t bytes;
	uint64_t buffers;
	uint64_t peak_bytes; /* TTMEM_UNKNOWN if several processes share the device */
	uint64_t capacity;   /* of the device; 0 = not known */
};

/* A device over all living processes. */
struct ttmem_query_device {
	uint32_t struct_size;
	uint32_t device;    /* the driver's number, else the smallest that a process uses for it */
	uint64_t unique_id; /* ASIC id; 0 = not known */
	uint32_t processes; /* that report their memory of it */
	uint32_t untracked; /* that have it open and report nothing */
	char card[32];      /* "n300"; empty = not known, likewise the next */
	char arch[32];
	struct ttmem_query_memory memory[TTMEM_TYPE_COUNT]; /* by type: TTMEM_DRAM and so on */
};

/* A living process. */
struct ttmem_query_process {
	uint32_t struct_size;
	uint32_t pid;
	uint32_t user_id;
	uint32_t
		is_tracked; /* 0 = it has a device open and reports nothing: its memory is unknown */
	uint32_t devices;   /* how many it has; for ttmem_query_share() */
	uint32_t reserved;
	char command[32];
	char user[32];
};

/* What a process holds of one of its devices. */
struct ttmem_query_share {
	uint32_t struct_size;
	uint32_t device;     /* as ttmem_query_device has it; two cards may share a number */
	uint32_t own_device; /* as the process numbers it */
	uint32_t row;        /* its ttmem_query_device(); UINT32_MAX = none, from before a reset */
	struct ttmem_query_memory memory[TTMEM_TYPE_COUNT];
};

struct ttmem_query;

/* 0, or a negative errno and *ret_query is NULL. */
int ttmem_query_new(struct ttmem_query **ret_query);
void ttmem_query_free(struct ttmem_query *query); /* NULL is fine */

/* Looks at the machine; until then there are no rows. 0, or a negative errno and the rows are as before. */
int ttmem_query_refresh(struct ttmem_query *query);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* structs of the same names, like stat() */
#endif
/*
 * Row @index, from 0 on, in the order of numbers. 0; -ENOENT if there are fewer; -EINVAL if struct_size is
 * smaller than any version had. The row is unchanged then.
 */
int ttmem_query_device(const struct ttmem_query *query, size_t index,
		       struct ttmem_query_device *ret_device);
int ttmem_query_process(const struct ttmem_query *query, size_t index,
			struct ttmem_query_process *ret_process);
int ttmem_query_share(const struct ttmem_query *query, size_t process, size_t index,
		      struct ttmem_query_share *ret_share);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#endif
