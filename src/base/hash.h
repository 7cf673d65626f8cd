/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Hashes for private tables inside the application: they need nothing but libc. Not for hostile
 * keys: an application that floods its own table slows only itself.
 */

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define HASH_K0 UINT64_C(0x9e3779b97f4a7c15)
#define HASH_K1 UINT64_C(0xd6e8feb86659fd93)

/* Both halves of a 128-bit product folded together: every input bit reaches every output bit. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t hash_u64(uint64_t value)
{
	return hash_fold(value ^ HASH_K0, HASH_K1);
}

/* A number that nobody else knows, to place keys of others by; never 0. @own: any address. */
static inline uint64_t hash_seed(const void *own)
{
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = hash_u64((uintptr_t)own); /* early at boot: better than none */
	return seed | 1;
}

/* @data of @length bytes, eight at a time; the last word overlaps the one before it. */
static inline uint64_t hash_bytes(const void *data, size_t length)
{
	const unsigned char *p = data;
	uint64_t h = length * HASH_K1;
	uint64_t word = 0;

	if (length < 8) {
		for (size_t i = 0; i < length; i++)
			word = word << 8 | p[i];
		return hash_fold(h ^ word ^ HASH_K0, HASH_K1);
	}
	for (size_t i = 0; i + 8 < length; i += 8) {
		memcpy(&word, p + i, 8);
		h = hash_fold(h ^ word ^ HASH_K0, HASH_K1);
	}
	memcpy(&word, p + length - 8, 8);
	return hash_fold(h ^ word ^ HASH_K0, HASH_K1);
}
