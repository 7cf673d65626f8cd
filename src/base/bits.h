/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The few macros that everything uses: branch hints, alignment, bounds, and compiler barriers,
 * whose reasons are given where they are used.
 */

#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define CACHE_LINE 64

/* Keeps the compiler from moving memory accesses across it; emits no instruction. */
#define compiler_barrier() __asm__ volatile("" ::: "memory")

/*
 * Copies and compares shared memory without a library call. A race detector replaces memcpy() with
 * an instrumented one, for us too, but does not know our locks: it would report false races.
 */
static inline void bits_copy(void *to, const void *from, size_t length)
{
	unsigned char *t = (unsigned char *)to;
	const unsigned char *f = (const unsigned char *)from;

	for (size_t i = 0; i < length; i++) {
		t[i] = f[i];
		compiler_barrier(); /* or the compiler turns it into memcpy() */
	}
}

static inline int bits_same(const void *a, const void *b, size_t length)
{
	const unsigned char *p = (const unsigned char *)a;
	const unsigned char *q = (const unsigned char *)b;
	uint64_t x, y;

	for (; length >= sizeof(x); length -= sizeof(x), p += sizeof(x), q += sizeof(x)) {
		__builtin_memcpy(&x, p, sizeof(x)); /* one load each */
		__builtin_memcpy(&y, q, sizeof(y));
		if (x != y)
			return 0;
	}
	for (; length > 0; length--) {
		if (*p++ != *q++)
			return 0;
	}
	return 1;
}

static inline uint64_t bits_align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

static inline uint64_t bits_align_down(uint64_t value, uint64_t alignment)
{
	return value & ~(alignment - 1);
}

/* The order of two numbers, as a function for qsort() returns it. */
static inline int bits_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
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
 * Orders earlier stores before later ones for all observers. On x86 stores become visible in
 * program order, so only the compiler has to be restrained; aarch64 needs an instruction.
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

/*
 * Later loads are made after earlier ones; the partner of a store barrier or of a store with release. x86 makes loads
 * in program order, so only the compiler has to be held; aarch64 needs the instruction.
 */
static inline void bits_load_barrier(void)
{
#if defined(__x86_64__)
	compiler_barrier();
#elif defined(__aarch64__)
	__asm__ volatile("dmb ishld" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
