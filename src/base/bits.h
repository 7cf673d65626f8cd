/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The few macros that everything uses: branch hints, alignment, bounds, and the compiler barriers whose
 * reasons are told where they stand.
 */

#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define CACHE_LINE 64

/* Keeps the compiler from moving memory accesses across; emits nothing. */
#define compiler_barrier() __asm__ volatile("" ::: "memory")

static inline uint64_t bits_align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

static inline uint64_t bits_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t bits_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The largest power of two that is <= value; value must not be 0. */
static inline uint64_t bits_floor_pow2(uint64_t value)
{
	return UINT64_C(1) << (63 - __builtin_clzll(value));
}

/*
 * Later stores stay behind earlier ones for everybody who watches. On x86 stores are seen in program
 * order, so only the compiler has to be held; aarch64 needs the instruction.
 */
static inline void bits_store_barrier(void)
{
#if defined(__x86_64__)
	compiler_barrier();
#elif defined(__aarch64__)
	__asm__ volatile("dmb ishst" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
