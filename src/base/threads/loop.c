/* SPDX-License-Identifier: Apache-2.0 */

/* The event loop. Timers are in a binary heap; each knows its index, so that it can be removed. */

#include "base/threads/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define LOOP_EVENTS 64
#define LOOP_WAIT_NS (3600 * NS_PER_S) /* nobody waits longer at once */

struct loop {
	int fd;
	bool stopped;
	uint64_t now_ns;

	/*
	 * What epoll_wait() returned and has not been dispatched yet: a source that is removed
	 * meanwhile is taken out of here.
	 */
	struct epoll_event events[LOOP_EVENTS];
	int event_count;

	struct loop_timer **timers;
	size_t timer_count, timer_capacity;
};

int loop_new(struct loop **ret_loop)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->fd < 0) {
		int r = -errno;

		free(loop);
		return r;
	}
	loop->now_ns = clock_ns(CLOCK_MONOTONIC);
	*ret_loop = loop;
	return 0;
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	(void)close(loop->fd); /* nothing was written to it */
	free(loop->timers);
	free(loop);
	return NULL;
}

static int loop_control(struct loop *loop, int how, struct loop_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->fd, how, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_source *source, uint32_t events)
{
	int r = loop_control(loop, EPOLL_CTL_ADD, source, events);

	if (r == 0)
		source->added = true;
	return r;
}

int loop_change(struct loop *loop, struct loop_source *source, uint32_t events)
{
	return loop_control(loop, EPOLL_CTL_MOD, source, events);
}

void loop_remove(struct loop *loop, struct loop_source *source)
{
	if (!source->added)
		return;
	source->added = false;
	(void)loop_control(loop, EPOLL_CTL_DEL, source, 0); /* was added: cannot fail */
	for (int i = 0; i < loop->event_count; i++) {
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
	}
}

static void loop_place(struct loop *loop, size_t i, struct loop_timer *timer)
{
	loop->timers[i] = timer;
	timer->place = i + 1;
}

/* Moves a timer up or down from @i until the heap is in order. */
static void loop_settle(struct loop *loop, size_t i, struct loop_timer *timer)
{
	while (i > 0 && loop->timers[(i - 1) / 2]->due_ns > timer->due_ns) {
		loop_place(loop, i, loop->timers[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < loop->timer_count &&
		    loop->timers[child + 1]->due_ns < loop->timers[child]->due_ns)
			child++;
		if (child >= loop->timer_count || loop->timers[child]->due_ns >= timer->due_ns)
			break;
		loop_place(loop, i, loop->timers[child]);
		i = child;
	}
	loop_place(loop, i, timer);
}

int loop_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns)
{
	struct loop_timer **timers;

	timer->due_ns = due_ns;
	if (timer->place) {
		loop_settle(loop, timer->place - 1, timer);
		return 0;
	}
	timers = array_grow(loop->timers, &loop->timer_capacity, loop->timer_count + 1,
			    sizeof(struct loop_timer *));
	if (!timers)
		return -ENOMEM;
	loop->timers = timers;
	loop->timer_count++;
	loop_settle(loop, loop->timer_count - 1, timer);
	return 0;
}

void loop_cancel(struct loop *loop, struct loop_timer *timer)
{
	size_t place = timer->place;

	if (!place)
		return;
	timer->place = 0;
	loop->timer_count--;
	if (place - 1 < loop->timer_count)
		loop_settle(loop, place - 1, loop->timers[loop->timer_count]);
}

uint64_t loop_now(const struct loop *loop)
{
	return loop->now_ns;
}

/* Nanoseconds until the next timer, at most @timeout_ms; -1 = forever. */
static int64_t loop_timeout(const struct loop *loop, int timeout_ms)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t most = timeout_ms < 0 ? LOOP_WAIT_NS : (uint64_t)timeout_ms * NS_PER_MS;

	if (loop->timer_count == 0)
		return timeout_ms < 0 ? -1 : (int64_t)most;
	if (loop->timers[0]->due_ns <= now)
		return 0;
	return (int64_t)bits_min(bits_min(loop->timers[0]->due_ns - now, most), LOOP_WAIT_NS);
}

/* Precise where the kernel can; else rounded up, so that a timer is due on return. */
static int loop_wait(struct loop *loop, int64_t wait_ns)
{
	struct timespec wait = clock_timespec((uint64_t)wait_ns); /* not used if there is no end */
	/* Called by its number: the function is new in glibc 2.35 (tools/check/glibc.sh). */
	int n = (int)syscall(SYS_epoll_pwait2, loop->fd, loop->events, LOOP_EVENTS,
			     wait_ns < 0 ? NULL : &wait, NULL, 0);

	if (n >= 0 || (errno != ENOSYS && errno != EPERM))
		return n;
	return epoll_wait(loop->fd, loop->events, LOOP_EVENTS,
			  wait_ns < 0 ? -1 : clock_left_ms(0, (uint64_t)wait_ns));
}

/* Fires timers that were due when the turn began; one set to now by a callback waits a turn. */
static void loop_fire(struct loop *loop)
{
	size_t most = loop->timer_count;

	while (most-- > 0 && loop->timer_count > 0 && loop->timers[0]->due_ns <= loop->now_ns) {
		struct loop_timer *timer = loop->timers[0];

		loop_cancel(loop, timer);
		timer->fire(timer);
	}
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	int n = loop_wait(loop, loop_timeout(loop, timeout_ms));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	loop->now_ns = clock_ns(CLOCK_MONOTONIC);
	loop->event_count = n;
	for (int i = 0; i < n; i++) {
		struct loop_source *source = loop->events[i].data.ptr;

		if (source)
			source->ready(source, loop->events[i].events);
	}
	loop->event_count = 0;
	loop_fire(loop);
	return 0;
}

int loop_run(struct loop *loop)
{
	int r = 0;

	loop->stopped = false;
	while (r == 0 && !loop->stopped)
		r = loop_turn(loop, -1);
	return r;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
