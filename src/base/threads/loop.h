/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One thread, one epoll. Sources and timers are embedded in their owners; callbacks find the owner
 * with container_of(). A callback does a bounded amount of work and returns; level triggering calls
 * it again for the rest. A source must be removed before its fd is closed: epoll remembers files,
 * not numbers.
 *
 * Timers run on CLOCK_MONOTONIC. Both sources and timers may be removed inside any callback,
 * including their own, and may then be freed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

struct loop_source {
	int fd; /* owned by the owner of the source */
	void (*ready)(struct loop_source *source, uint32_t events);
	bool added; /* private to the loop */
};

#define LOOP_SOURCE_NULL     \
	(struct loop_source) \
	{                    \
		.fd = -1     \
	}

struct loop_timer {
	void (*fire)(struct loop_timer *timer);
	uint64_t due_ns;
	size_t place; /* private to the loop: 1 + index in its heap, 0 = not set */
};

/* 0 or a negative errno. */
int loop_new(struct loop **ret_loop);
struct loop *loop_free(struct loop *loop);

/* @events as for epoll: EPOLLIN, EPOLLOUT, or 0 for hang-up only. */
int loop_add(struct loop *loop, struct loop_source *source, uint32_t events);
int loop_change(struct loop *loop, struct loop_source *source, uint32_t events);
void loop_remove(struct loop *loop, struct loop_source *source);

/* Sets a timer, or sets it again. It fires once. 0 or -ENOMEM. */
int loop_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns);
void loop_cancel(struct loop *loop, struct loop_timer *timer);

/* CLOCK_MONOTONIC as of this turn. */
uint64_t loop_now(const struct loop *loop);

/* Waits and dispatches once, for at most @timeout_ms (-1 = unlimited). */
int loop_turn(struct loop *loop, int timeout_ms);

/* Turns until loop_stop(). 0 or a negative errno. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
