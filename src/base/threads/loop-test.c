/* SPDX-License-Identifier: Apache-2.0 */

/* The event loop: dispatch, removal from inside callbacks, timers in order. */

#include "base/threads/loop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"

struct pair {
	struct loop *loop;
	struct loop_source source;
	struct pair *other; /* removed by this one's callback */
	int writing;
	int called;
};

static void pair_ready(struct loop_source *source, uint32_t events)
{
	struct pair *pair = container_of(source, struct pair, source);
	char byte;

	assert(events & (EPOLLIN | EPOLLHUP));
	pair->called++;
	if (events & EPOLLIN)
		assert(read(source->fd, &byte, 1) == 1);
	if (pair->other)
		loop_remove(pair->loop, &pair->other->source);
}

static void pair_open(struct pair *pair, struct loop *loop)
{
	int ends[2];

	assert(pipe2(ends, O_CLOEXEC) == 0);
	*pair = (struct pair){
		.loop = loop,
		.source = {.fd = ends[0], .ready = pair_ready},
		.writing = ends[1],
	};
	assert(loop_add(loop, &pair->source, EPOLLIN) == 0);
}

static void pair_close(struct pair *pair)
{
	loop_remove(pair->loop, &pair->source);
	close(pair->source.fd);
	if (pair->writing >= 0)
		close(pair->writing);
}

UNIT(calls_what_is_ready_until_it_is_read)
{
	struct loop *loop;
	struct pair pair;

	assert(loop_new(&loop) == 0);
	pair_open(&pair, loop);
	assert(loop_turn(loop, 0) == 0 && pair.called == 0);
	assert(write(pair.writing, "ab", 2) == 2);
	assert(loop_turn(loop, 0) == 0 && pair.called == 1);
	assert(loop_turn(loop, 0) == 0 && pair.called == 2);
	assert(loop_turn(loop, 0) == 0 && pair.called == 2);
	pair_close(&pair);
	loop_free(loop);
}

UNIT(a_source_removed_in_the_same_turn_is_not_called)
{
	struct loop *loop;
	struct pair a, b;

	assert(loop_new(&loop) == 0);
	pair_open(&a, loop);
	pair_open(&b, loop);
	a.other = &b;
	b.other = &a;
	assert(write(a.writing, "x", 1) == 1 && write(b.writing, "x", 1) == 1);
	assert(loop_turn(loop, 0) == 0);
	assert(a.called + b.called == 1);
	pair_close(&a);
	pair_close(&b);
	loop_free(loop);
}

struct alarm {
	struct loop_timer timer;
	struct loop *loop;
	int *order;
	int fired_at; /* position in the order, from 1 */
	uint64_t again_ns;
};

static void alarm_fire(struct loop_timer *timer)
{
	struct alarm *alarm = container_of(timer, struct alarm, timer);

	alarm->fired_at = ++*alarm->order;
	if (alarm->again_ns)
		assert(loop_set(alarm->loop, timer, alarm->again_ns) == 0);
}

UNIT(timers_fire_in_order_and_can_be_cancelled)
{
	enum {
		COUNT = 200
	};
	static struct alarm alarms[COUNT];
	struct loop *loop;
	int order = 0;

	assert(loop_new(&loop) == 0);
	srandom(1);
	for (int i = 0; i < COUNT; i++) {
		alarms[i] = (struct alarm){.timer.fire = alarm_fire, .loop = loop, .order = &order};
		assert(loop_set(loop, &alarms[i].timer, 1000 + (uint64_t)(random() % 1000)) == 0);
	}
	for (int i = 0; i < COUNT; i += 3)
		loop_cancel(loop, &alarms[i].timer);
	for (int i = 1; i < COUNT; i += 3)
		assert(loop_set(loop, &alarms[i].timer, 1 + (uint64_t)(random() % 1000)) == 0);
	assert(loop_turn(loop, 0) == 0);
	for (int i = 0; i < COUNT; i++) {
		assert((alarms[i].fired_at == 0) == (i % 3 == 0));
		for (int k = 0; k < COUNT; k++) {
			if (alarms[i].fired_at && alarms[k].fired_at &&
			    alarms[i].timer.due_ns < alarms[k].timer.due_ns)
				assert(alarms[i].fired_at < alarms[k].fired_at);
		}
	}
	loop_free(loop);
}

UNIT(a_timer_that_sets_itself_does_not_hold_the_turn)
{
	struct loop *loop;
	int order = 0;
	struct alarm alarm = {.timer.fire = alarm_fire, .order = &order, .again_ns = 1};

	assert(loop_new(&loop) == 0);
	alarm.loop = loop;
	assert(loop_set(loop, &alarm.timer, 1) == 0);
	assert(loop_turn(loop, 0) == 0 && order == 1);
	assert(loop_turn(loop, -1) == 0 && order == 2);
	loop_cancel(loop, &alarm.timer);
	assert(loop_turn(loop, 0) == 0 && order == 2);
	loop_free(loop);
}
