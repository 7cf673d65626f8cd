/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TTMEM_TTMEM_H
#define TTMEM_TTMEM_H

/*
 * libttmem: report which device memory this process holds.
 *
 * An application (or the runtime below it) reports each allocation and each free of device memory
 * here. The library writes them into the process's own book, a sealed memory file. Other programs
 * may read it at any time, and those that hold it open can still read it after the process has died.
 *
 * No call blocks, logs, raises a signal or fails: an invalid call is counted and otherwise ignored.
 * All calls are thread-safe, work in forked children, before main() and after exit handlers, and cost
 * as much as an empty function while tracking is off. Tracking is on with TTMEM=1 or
 * TT_ALLOC_TRACKING_ENABLED=1 in the environment; TTMEM=0 overrides both.
 *
 * Signal handlers may call too. A handler that interrupted a call should return to it, as with malloc().
 * After a siglongjmp() out of it, or asynchronous cancellation, the interrupted call may not be recorded
 * (it is counted as lost), and the totals of its device are bounds from then on. The thread's later events,
 * and those of other threads on that device, are recorded again as soon as it is certain that the call will
 * not go on: its thread has ended, or its part of the stack has been used for something else. Until then they
 * are lost, and counted; other threads wait for the call once, for some seconds. A child that the handler
 * forked must not return from it but exec or _exit.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TTMEM_VERSION_MAJOR 0
#define TTMEM_VERSION_MINOR 2
#define TTMEM_VERSION_PATCH 0

/* Kinds of memory. 0 to 4 are tt-metal's BufferType. */
#define TTMEM_DRAM 0u
#define TTMEM_L1 1u
#define TTMEM_SYSTEM_MEMORY 2u
#define TTMEM_L1_SMALL 3u
#define TTMEM_TRACE 4u
#define TTMEM_CB 5u     /* circular buffer */
#define TTMEM_KERNEL 6u /* kernel code */
#define TTMEM_TYPE_COUNT 7u
#define TTMEM_ANY UINT32_MAX /* in a free: type not known; in a query: all types */

#define TTMEM_DEVICE_COUNT 1024u /* devices are numbered 0 to 1023 */

/*
 * Spaces of a device, 0 to 1023: one for each allocator that hands out addresses of its own, such as
 * those of sub-devices, of a mesh and its submeshes, or of single cores. Buffers at the same address in
 * different spaces are different buffers. 0 unless told.
 */
#define TTMEM_SPACE_COUNT 1024u

/* Properties of a buffer; the flags of ttmem_alloc_ex() and ttmem_free_ex(). */
#define TTMEM_FLAG_OWNS_DATA 0x01u    /* the buffer owns the memory behind it */
#define TTMEM_FLAG_PREALLOCATED 0x02u /* at an address that the caller passed in */
#define TTMEM_FLAG_ALIAS \
	0x04u /* lies inside another buffer (globally allocated CB): adds 0 bytes */
#define TTMEM_FLAG_HOOKED 0x08u /* graph capture: no memory behind it, only counted */

/* For ttmem_free_ex() with TTMEM_ANY: match only buffers, never a circular buffer or a kernel. */
#define TTMEM_FREE_BUFFER 0x100u

/*
 * For ttmem_free_ex(): the owner's destructor frees the buffer, because it was not freed before. Only the
 * buffer log of the old system (TT_BUFFER_DEBUG_LOG) distinguishes this from other frees.
 */
#define TTMEM_FREE_DESTRUCTOR 0x200u

/* For ttmem_free_ex() with space 0: only the buffer in space 0. Otherwise 0 means not told. */
#define TTMEM_FREE_IN_SPACE 0x400u

/* For ttmem_free_ex(): it ends because its device or allocator is closed, as with ttmem_end_space(). */
#define TTMEM_FREE_CLOSED 0x800u

/* How a buffer was placed: shape_flags of ttmem_alloc_ex(). Neither of a pair: not known. */
#define TTMEM_SHAPE_BOTTOM_UP 0x01u
#define TTMEM_SHAPE_TOP_DOWN 0x02u
#define TTMEM_SHAPE_INTERLEAVED 0x04u
#define TTMEM_SHAPE_SHARDED 0x08u
#define TTMEM_SHAPE_PER_CORE \
	0x10u /* only of a failed allocation: each core has its own addresses */

/* Kinds of kernels, for buffers of type TTMEM_KERNEL. */
#define TTMEM_KERNEL_APPLICATION 0u
#define TTMEM_KERNEL_FABRIC 1u
#define TTMEM_KERNEL_DISPATCH 2u

#define TTMEM_UNKNOWN UINT64_MAX /* for a number the caller does not know */

/*
 * Arguments of ttmem_alloc_ex(). Set struct_size to sizeof(struct ttmem_alloc_args) and unknown fields
 * to 0. Older, shorter versions of the struct stay valid.
 */
struct ttmem_alloc_args {
	uint32_t struct_size;
	uint32_t device;
	uint32_t type;
	uint32_t flags;
	uint64_t address;
	uint64_t size;
	const char *name; /* may be NULL; stored as UTF-8, at most 255 bytes */
	uint64_t owner;   /* any value that identifies the owner, for ttmem_free_all(); 0 = none */
	/*
	 * What the buffer takes is size_per_bank * banks, which may be more than its size. Without
	 * size_per_bank it is not known; banks that are 0 are those that ttmem_device() declared.
	 */
	uint64_t size_per_bank; /* with alignment; 0 = not known */
	uint32_t banks;         /* banks or cores that the buffer touches */
	uint32_t first_bank;
	uint32_t kernel_sort; /* TTMEM_KERNEL_..., for type TTMEM_KERNEL */
	uint32_t name_id;     /* from ttmem_intern(); used if name is NULL */
	uint32_t space;
	uint32_t shape_flags; /* TTMEM_SHAPE_... */
	uint64_t page_size;   /* 0 = not known */
};

/* Arguments of ttmem_free_ex(). */
struct ttmem_free_args {
	uint32_t struct_size;
	uint32_t device;
	uint32_t type;  /* or TTMEM_ANY */
	uint32_t flags; /* TTMEM_FLAG_HOOKED, TTMEM_FREE_... or 0 */
	uint64_t address;
	uint32_t space;    /* 0 = not told, see ttmem_free() and TTMEM_FREE_IN_SPACE */
	uint32_t reserved; /* 0 */
	uint64_t owner;    /* only for the buffer log of the old system; 0 = not told */
};

/* Arguments of ttmem_alloc_failed_ex(). */
struct ttmem_failed_args {
	uint32_t struct_size;
	uint32_t device;
	uint32_t type;
	uint32_t space;
	uint64_t size;
	uint64_t largest_free; /* block; in each bank if size_per_bank is not 0; or TTMEM_UNKNOWN */
	uint64_t size_per_bank; /* that was needed; 0 = not known */
	uint64_t bank_size;     /* 0 = not known, and then the next is not either */
	uint64_t bank_free;     /* in all free blocks of a bank */
	uint32_t banks;         /* that the buffer would have touched; 0 = not known */
	uint32_t shape_flags;   /* TTMEM_SHAPE_PER_CORE or 0 */
	const char *name;       /* may be NULL */
};

/* Arguments of ttmem_clash(). */
struct ttmem_clash_args {
	uint32_t struct_size;
	uint32_t device;
	uint32_t type;           /* of the buffer in the way, like space and address */
	uint32_t space;          /* not "not told": 0 is space 0 */
	uint64_t address;        /* in each bank, like the next two */
	uint64_t wanted_address; /* of what was refused */
	uint64_t wanted_size;
	const char *name; /* of what was refused; may be NULL */
};

/* Who makes a call, as ttmem_here() returns it: only for the process that asked. */
struct ttmem_origin {
	uint64_t time;
	uint32_t thread;
	uint32_t phase;
	uint32_t stack;
	uint32_t reserved;
};

/* Arguments of ttmem_trace_overlap(). */
struct ttmem_trace_overlap_args {
	uint32_t struct_size;
	uint32_t device;
	uint32_t type;
	uint32_t space;
	uint64_t address; /* of the buffer that was allocated */
	uint64_t size;
	const char *trace;          /* its name; may be NULL */
	uint64_t traced_size;       /* of the buffer that the trace had there */
	struct ttmem_origin traced; /* who allocated that; all 0 = not known */
};

/* One kind of memory of a device. All 0 if unknown. */
struct ttmem_memory_facts {
	uint64_t capacity;  /* bytes in all banks together */
	uint64_t bank_base; /* first address inside a bank that can be allocated */
	uint64_t bank_size; /* bytes per bank */
	uint32_t banks;
	uint32_t alignment;
};

/* Arguments of ttmem_device(): declares a device, or corrects what was declared. */
struct ttmem_device_args {
	uint32_t struct_size;
	uint32_t device;
	uint64_t unique_id;   /* ASIC id; 0 = not known */
	const char *arch;     /* "wormhole_b0", "blackhole"; may be NULL */
	const char *card;     /* "n150", "n300", "p150"; may be NULL */
	uint32_t remote;      /* 1 = reached through another chip */
	uint32_t l1_per_core; /* bytes */
	uint32_t cores;
	uint32_t reserved; /* 0 */
	struct ttmem_memory_facts memory[TTMEM_TYPE_COUNT];
};

/* What ttmem_stats() returns for this process. */
struct ttmem_stats {
	uint64_t bytes;
	uint64_t buffers;
	uint64_t peak_bytes; /* exact for one type; for all types the sum of their peaks */
	uint64_t allocs;
	uint64_t frees;
};

/* 1 if events are being recorded, else 0. */
int ttmem_enabled(void);

/* "0.2.0": the version of the loaded library. */
const char *ttmem_version(void);

/*
 * A buffer was allocated, or freed, in space 0. Allocating a live (device, type, address) again with the
 * same size adds a reference, with another size replaces it. A free without a known type may pass
 * TTMEM_ANY. A free that finds nothing in space 0 ends the only buffer at that address in another space;
 * if several spaces have one, it ends none of them and is counted.
 */
void ttmem_alloc(uint32_t device, uint32_t type, uint64_t address, uint64_t size, const char *name);
void ttmem_free(uint32_t device, uint32_t type, uint64_t address);

/* The same buffer on n devices of a mesh; size is per device. */
void ttmem_alloc_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address,
		      uint64_t size, const char *name);
void ttmem_free_mesh(const uint32_t *devices, size_t n, uint32_t type, uint64_t address);

/* With all properties of a buffer. */
void ttmem_alloc_ex(const struct ttmem_alloc_args *args);
void ttmem_free_ex(const struct ttmem_free_args *args);

/* The same for n devices of a mesh; args->device is ignored. */
void ttmem_alloc_mesh_ex(const uint32_t *devices, size_t n, const struct ttmem_alloc_args *args);
void ttmem_free_mesh_ex(const uint32_t *devices, size_t n, const struct ttmem_free_args *args);

/*
 * Free every buffer of that owner, device and type (or TTMEM_ANY), whatever their references: for
 * example all circular buffers of a program. Owner 0 frees every buffer of the device and type.
 */
void ttmem_free_all(uint32_t device, uint32_t type, uint64_t owner);

/*
 * An allocator was closed or cleared, and whatever it had handed out is gone: frees every buffer in that
 * space of the device, whatever their references. Returns how many there were.
 */
uint64_t ttmem_end_space(uint32_t device, uint32_t space);

/* An allocation failed: the requested size, and the largest free block (or TTMEM_UNKNOWN). */
void ttmem_alloc_failed(uint32_t device, uint32_t type, uint64_t size, uint64_t largest_free);
void ttmem_alloc_failed_ex(const struct ttmem_failed_args *args);

/*
 * Something was refused because it would lie over a live buffer, such as circular buffers that grow into a
 * buffer of L1. Nothing is allocated; it is an incident that shows who allocated the buffer, and this call.
 */
void ttmem_clash(const struct ttmem_clash_args *args);

/*
 * A buffer was allocated where a captured trace, which may still be replayed, had one: a replay overwrites
 * it. An incident that shows both; whoever captures traces asks ttmem_here() when it allocates a buffer.
 */
void ttmem_here(struct ttmem_origin *ret_origin);
void ttmem_trace_overlap(const struct ttmem_trace_overlap_args *args);

/* Declare a device; report that the application has closed it. */
void ttmem_device(const struct ttmem_device_args *args);
void ttmem_device_close(uint32_t device);

/*
 * Phases: labels recorded with each allocation. Each thread has a stack of them; while it is empty the
 * process's phase applies (initially the environment's TTMEM_PHASE). A mark is a named moment.
 */
void ttmem_phase_push(const char *name);
void ttmem_phase_pop(void);
void ttmem_phase_process(const char *name);
void ttmem_mark(const char *name);

/*
 * Functions, files and libraries of the application that only pass allocations on, such as a pool: the
 * frame that stands for a stack is the innermost one outside them. Patterns with "*" and "?", separated
 * by commas; "name::" is a whole namespace. Replaces the earlier list; NULL = none.
 */
void ttmem_skip_frames(const char *patterns);

/*
 * For libraries that report for another: from now on allocations and frees may be missing, for the reason
 * given. The book says so for good, all its figures are bounds, and whatever judges them (leaks, limits, tests)
 * fails. Only the first reason counts. ttmem_gave_up(): that reason; NULL = nobody has given up.
 */
void ttmem_give_up(const char *reason);
const char *ttmem_gave_up(void);

/* An id for a name, to pass as name_id in this process (a forked child needs a new one); 0 = none. */
uint32_t ttmem_intern(const char *name);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct of the same name, like stat() */
#endif
/* This process's own figures. 0, or a negative errno with *ret_stats unchanged. */
int ttmem_stats(uint32_t device, uint32_t type, struct ttmem_stats *ret_stats);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Reset the peaks of a device and type (or TTMEM_ANY) to what is live now. */
void ttmem_reset_peak(uint32_t device, uint32_t type);

/* Do not record events until resumed; unrecorded events are counted. Calls nest. */
void ttmem_pause(void);
void ttmem_resume(void);

/*
 * Before the application forbids itself system calls (seccomp) or the time stamp counter (PR_SET_TSC):
 * makes the book if there is none yet, reserves room for that many more live buffers on every device that is
 * declared or has had an event, and from then on no call here makes a system call or reads a clock, in any
 * thread, nor in children that are forked. Later events have the time of this call; stacks that a thread has
 * not had before, new devices, threads' numbers and debug logs are left out, and so is what no longer
 * fits, which is counted as anywhere. A forked child has no book. Cannot be undone. Return: 0, -ENOSPC if
 * there is less room, -ENODATA if tracking is off, -EBUSY in a signal handler that interrupted a call, in
 * which case nothing has changed.
 */
int ttmem_freeze(uint64_t buffers);

/*
 * The application ends normally: whatever is still live was left behind on purpose or by mistake, but
 * not by a crash. Called automatically at exit; later events still count.
 */
void ttmem_goodbye(void);

#ifdef __cplusplus
}
#endif

#endif
