/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Times as nanoseconds in 64 bits: they can be compared and added without care, and 584 years fit. A
 * deadline is a time of CLOCK_MONOTONIC, and CLOCK_NEVER is one that does not come.
 *
 * Header only, because libttmem uses it too.
 */

#include <limits.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define CLOCK_NEVER UINT64_MAX

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	if (clock_gettime(id, &now) < 0)
		return 0; /* only for an id that does not exist */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * By a system call: the function of libc reads the time stamp counter, which an application may have
 * forbidden. For paths of libttmem on which time does not matter.
 */
static inline uint64_t clock_ns_kernel(clockid_t id)
{
	struct timespec now;

	if (syscall(SYS_clock_gettime, id, &now) < 0)
		return 0; /* only for an id that does not exist */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_ms(clockid_t id)
{
	return clock_ns(id) / NS_PER_MS;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){
		.tv_sec = (time_t)(ns / NS_PER_S),
		.tv_nsec = (long)(ns % NS_PER_S),
	};
}

/*
 * A clock that stands still while its user does not run, for judging others: it is passed the time
 * regularly, and a step that is longer than @most counts as @most.
 */
struct clock_awake {
	uint64_t ns;
	uint64_t passed_ns; /* CLOCK_MONOTONIC of the last step; 0 = there was none */
};

static inline uint64_t clock_awake_pass(struct clock_awake *clock, uint64_t now_ns, uint64_t most)
{
	uint64_t step = now_ns > clock->passed_ns ? now_ns - clock->passed_ns : 0;

	clock->ns += clock->passed_ns ? (step < most ? step : most) : 0;
	clock->passed_ns = now_ns;
	return clock->ns;
}

/*
 * What is left until @deadline_ns, as poll() and epoll_wait() want it: rounded up, so that they do not
 * return too early; 0 if it has passed, -1 for CLOCK_NEVER.
 */
static inline int clock_left_ms(uint64_t now_ns, uint64_t deadline_ns)
{
	uint64_t ms;

	if (deadline_ns == CLOCK_NEVER)
		return -1;
	if (deadline_ns <= now_ns)
		return 0;
	ms = (deadline_ns - now_ns - 1) / NS_PER_MS + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}
