/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Growth judged from the past: fifty generated workloads, of which half grow. The figures are in
 * docs/leak-patterns.md.
 */

#include "model/sites/growth-past.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/testing/unit.h"

#define START (UINT64_C(1700000000) * NS_PER_S)
#define MIB UINT64_C(1048576)
#define BUFFERS_MAX 100000u

enum {
	DRAM = 0,
	L1 = 1,
};

/* A site of a process, played second by second. */
struct play {
	struct growth_birth *live; /* in order of time */
	size_t count;
	uint64_t noise; /* bytes of the process's other sites */
	uint64_t random;
	struct growth_past past;
};

/* The same on every machine: xorshift. */
static uint64_t draw(struct play *play, uint64_t low, uint64_t high)
{
	play->random ^= play->random << 13;
	play->random ^= play->random >> 7;
	play->random ^= play->random << 17;
	return low + play->random % (high - low + 1);
}

static void play_init(struct play *play, uint64_t seed, uint64_t seconds)
{
	*play = (struct play){.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
	play->live = calloc(BUFFERS_MAX, sizeof(*play->live));
	assert(play->live);
	play->past.begin_ns = START;
	play->past.end_ns = START + seconds * NS_PER_S;
	for (int i = 0; i < 10; i++)
		(void)draw(play, 0, 1);
}

static void play_deinit(struct play *play)
{
	free(play->live);
	growth_past_deinit(&play->past);
}

static void take(struct play *play, uint64_t second, uint64_t bytes)
{
	if (play->count < BUFFERS_MAX)
		play->live[play->count++] = (struct growth_birth){
			START + second * NS_PER_S + draw(play, 0, NS_PER_S - 1), bytes};
}

static void drop(struct play *play, size_t index)
{
	play->count--;
	memmove(&play->live[index], &play->live[index + 1],
		(play->count - index) * sizeof(*play->live));
}

/* The second is over: the daemon records what the process holds. */
static void record(struct play *play, uint64_t second)
{
	uint64_t bytes = play->noise;

	for (size_t i = 0; i < play->count; i++)
		bytes += play->live[i].bytes;
	assert(growth_past_add(&play->past, 0, DRAM, START + second * NS_PER_S, bytes) == 0);
}

static int compare_births(const void *left, const void *right)
{
	const struct growth_birth *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static struct growth_verdict judge(struct play *play)
{
	growth_past_finish(&play->past);
	if (play->count > 0)
		qsort(play->live, play->count, sizeof(*play->live), compare_births);
	return growth_past_judge(&play->past, DRAM, play->live, play->count);
}

/* Activations that come and go beside the site. */
static void breathe(struct play *play, uint64_t second, uint64_t period)
{
	play->noise = second % period * 100 * MIB;
}

/* Something that grows, in one of five ways; @n varies it. */
static struct growth_verdict play_growing(uint64_t n)
{
	uint64_t seconds, every, begin = 0, period;
	struct growth_verdict verdict;
	struct play play;

	play_init(&play, n + 1, 1);
	seconds = draw(&play, 60, 600);
	every = draw(&play, 1, 6);
	period = draw(&play, 3, 15);
	play.past.end_ns = START + seconds * NS_PER_S;
	if (n % 5 == 3) /* in a process that was healthy for a long time */
		begin = seconds > 200 ? seconds - draw(&play, 90, 150) : 0;
	for (uint64_t second = 0; second < seconds; second++) {
		bool now = n % 5 == 2 ? draw(&play, 0, every) == 0 : second % every == 0;
		uint64_t bytes = n % 5 == 2 ? draw(&play, 1, 8) * MIB / 4 : MIB;

		if (second >= begin && now)
			take(&play, second, bytes);
		if (n % 5 == 1 || n % 5 == 3)
			breathe(&play, second, period);
		/* A cache that forgets half of what it should evict. */
		if (n % 5 == 4 && play.count > 4 && draw(&play, 0, 2 * every) == 0)
			drop(&play, draw(&play, 0, play.count - 1));
		record(&play, second);
	}
	verdict = judge(&play);
	play_deinit(&play);
	return verdict;
}

/* Something healthy that allocates all the time, in one of five ways. */
static struct growth_verdict play_healthy(uint64_t n)
{
	uint64_t seconds, length, room;
	struct growth_verdict verdict;
	struct play play;

	play_init(&play, 1000 + n, 1);
	length = draw(&play, 10, 40);
	room = draw(&play, 20, 200);
	/* At any time: rising memory has fallen before, and the first time is over. */
	seconds = draw(&play, 60, 600);
	if (n % 5 == 0)
		seconds = draw(&play, length * 5, length * 20);
	play.past.end_ns = START + seconds * NS_PER_S;
	for (uint64_t second = 0; second < seconds; second++) {
		switch (n % 5) {
		case 0: /* rises and falls */
			if (second % (length * 2) == 0)
				play.count = 0;
			take(&play, second, MIB);
			break;
		case 1: /* is loaded, and stays */
			if (second < length)
				take(&play, second, 64 * MIB);
			breathe(&play, second, 7);
			break;
		case 2: /* a cache with room for so many; it is filled quickly */
			for (uint64_t i = 0; i <= room / length; i++)
				take(&play, second, MIB);
			while (play.count > room)
				drop(&play, draw(&play, 0, play.count - 1));
			break;
		case 3: /* a cache that finds more and more of what it is asked for */
			if (draw(&play, 0, 200) > play.count * 200 / room)
				take(&play, second, MIB);
			break;
		default: /* requests of random length */
			for (uint64_t i = 0; i < 3; i++)
				take(&play, second, MIB);
			while (play.count > 0 && draw(&play, 0, 60) < play.count)
				drop(&play, draw(&play, 0, play.count - 1));
			break;
		}
		record(&play, second);
	}
	verdict = judge(&play);
	play_deinit(&play);
	return verdict;
}

UNIT(generated_workloads_are_judged_as_documented)
{
	uint32_t found = 0, false_alarms = 0;

	for (uint64_t n = 0; n < 25; n++) {
		bool grows = play_growing(n).span_ns > 0, alarm = play_healthy(n).span_ns > 0;

		if (!grows)
			fprintf(stderr, "missed: growing %d, kind %d\n", (int)n, (int)(n % 5));
		if (alarm)
			fprintf(stderr, "false: healthy %d, kind %d\n", (int)n, (int)(n % 5));
		found += grows;
		false_alarms += alarm;
	}
	fprintf(stderr, "found %u, missed %u of 25 that grow; false %u of 25 that do not\n", found,
		25 - found, false_alarms);
	assert(found >= 24 && false_alarms <= 1);
}

UNIT(a_megabyte_every_five_seconds_is_found_within_a_minute)
{
	struct growth_verdict verdict;
	struct play play;

	play_init(&play, 1, 60);
	for (uint64_t second = 0; second <= 60; second++) {
		if (second % 5 == 0 && second < 60)
			take(&play, second, MIB);
		record(&play, second);
	}
	verdict = judge(&play);
	assert(verdict.span_ns >= 50 * NS_PER_S && verdict.span_ns <= 61 * NS_PER_S);
	/* Its rate is right, too: 12 in a minute. */
	assert(verdict.bytes >= 11 * MIB && verdict.bytes <= 12 * MIB);
	/* Of the other types nothing is known. */
	assert(growth_past_judge(&play.past, L1, play.live, play.count).span_ns == 0);
	play_deinit(&play);
}

UNIT(a_short_past_decides_nothing)
{
	struct play play;

	play_init(&play, 1, 40);
	for (uint64_t second = 0; second <= 40; second++) {
		take(&play, second, MIB);
		record(&play, second);
	}
	assert(judge(&play).span_ns == 0);
	play_deinit(&play);
}

UNIT(what_was_held_before_is_no_record)
{
	struct play play;

	play_init(&play, 1, 100);
	for (uint64_t second = 0; second <= 100; second++) {
		play.noise = second % 25 * MIB;
		record(&play, second);
	}
	growth_past_finish(&play.past);
	assert(growth_past_has_seen(&play.past, DRAM, 10 * NS_PER_S, 10 * MIB));
	play.noise = 40 * MIB;
	record(&play, 100);
	assert(!growth_past_has_seen(&play.past, DRAM, 10 * NS_PER_S, 16 * MIB));
	play_deinit(&play);
}

UNIT(without_points_nothing_is_known)
{
	struct growth_birth birth = {START, 1};
	struct growth_past past = {.begin_ns = START, .end_ns = START + 100 * NS_PER_S};

	growth_past_finish(&past);
	assert(growth_past_judge(&past, DRAM, &birth, 1).span_ns == 0);
	assert(growth_past_judge(&past, DRAM, NULL, 0).span_ns == 0);
	assert(!growth_past_has_seen(&past, DRAM, 1, 1));
	growth_past_deinit(&past);
}

/* Sixty seconds of a line, a point each; its bytes by the second. */
static bool rises(uint64_t (*bytes)(uint64_t second))
{
	CLEANUP(growth_past_deinit) struct growth_past past = GROWTH_PAST_NULL;

	past.begin_ns = START;
	past.end_ns = START + 60 * NS_PER_S;
	for (uint64_t second = 0; second < 60; second++)
		assert(growth_past_add(&past, 0, DRAM, START + second * NS_PER_S, bytes(second)) ==
		       0);
	growth_past_finish(&past);
	return growth_past_rises(&past);
}

static uint64_t steady(uint64_t second)
{
	return MIB;
}

static uint64_t leaking(uint64_t second)
{
	return MIB + second;
}

static uint64_t up_and_down(uint64_t second)
{
	return second % 10 * MIB * (1 + second / 10);
}

UNIT(buffers_are_read_only_where_the_least_has_risen)
{
	assert(!rises(steady));
	assert(rises(leaking));
	assert(!rises(up_and_down));
}
