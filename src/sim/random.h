/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Random numbers that are the same on every machine: splitmix64 (Steele, Lea, Flood 2014). The seed
 * determines a run entirely, so printing one number is enough to repeat a failure.
 */

#include <stdint.h>

struct sim_random {
	uint64_t state;
};

/* The next 64 random bits. */
static inline uint64_t sim_random_next(struct sim_random *random)
{
	uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* A number from low to high, both inclusive; slightly uneven for huge ranges, which is harmless. */
static inline uint64_t sim_random_between(struct sim_random *random, uint64_t low, uint64_t high)
{
	return low + sim_random_next(random) % (high - low + 1);
}
