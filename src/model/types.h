/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kinds of memory, by number and by name, and the words for what happens to buffers. */

#include <stdbool.h>
#include <stdint.h>

#include "book/format/layout.h"

/* By number, as TTMEM_DRAM and its like in <ttmem/ttmem.h>, which only applications include. */
enum types_type {
#define TTMEM_TYPE(number, name, ...) TYPES_##name = number,
#include <ttmem/types.def>
};

/* For messages. tools/build/type_lists.py writes them. */
#define TYPES_ALL "DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE, CB or KERNEL"
#define TYPES_MEMORIES "DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE"
#define TYPES_WITH_BANKS "DRAM, L1, SYSTEM_MEMORY, L1_SMALL and TRACE"

/* As in documents: "DRAM"; NULL for an invalid number. */
const char *types_name(uint32_t type);

/* The type of that name, ignoring case. -EINVAL if there is none. */
int types_parse(const char *name, uint32_t *ret_type);

/* The memory it shares: DRAM for TRACE; L1 for L1_SMALL, CB and KERNEL. For display only. */
uint32_t types_folded(uint32_t type);

/* The memory whose banks its buffers lie in, itself if it has banks. Kernels may also lie in L1. */
uint32_t types_place(uint32_t type);

/* Whether it is a memory of its own, with banks and addresses. */
bool types_has_banks(uint32_t type);

/*
 * Kinds of incidents in documents and counters: those of a book, what exited processes left, memory
 * that two processes hold, and what was live when its device was closed.
 */
enum types_incident {
	TYPES_LEAK = BOOK_INCIDENT_TRACE_OVERLAP + 1,
	TYPES_OVERLAP,
	TYPES_HELD,
	TYPES_INCIDENTS,
};

/* A kind of incident that only those get who ask for it, and how the note ends if they do not get all. */
#define TYPES_HELD_AT_CLOSE "held_at_close"
#define TYPES_HELD_INCOMPLETE "more may have been held when it was closed"

const char *types_incident_kind(uint32_t kind);      /* "double_free", ... "held_at_close" */
uint32_t types_find_incident_kind(const char *name); /* TYPES_INCIDENTS: there is none */

/* Words of the JSON documents. NULL for an invalid number. */
const char *types_op_name(uint32_t op);         /* enum book_op: "alloc", "double_free" */
const char *types_incident_name(uint32_t kind); /* enum book_incident_kind */
const char *types_source_name(uint32_t source); /* enum book_source: "book", "socket", "kernel" */
const char *types_kernel_sort_name(uint32_t sort); /* "application", "fabric", "dispatch" */
const char *types_flag_name(uint32_t bit);         /* bit number of TTMEM_FLAG_...: "alias" */
