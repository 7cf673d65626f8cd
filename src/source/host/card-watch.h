/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a reader that stays remembers of cards from one reading to the next: who they were, which
 * the driver does not tell during a reset; that they were there, once they are removed; whether the
 * heartbeat goes on; and who held their memory when they were reset or removed.
 *
 * Cards are known by their bus address: it stays while the number of the node may change. May be used
 * by several threads.
 *
 * A reset or removal that begins and ends between two readings leaves traces, each of which is enough:
 * the heartbeat starts anew; the card has switched itself off once more; the driver has registered the
 * card again. What leaves none is a reset so soon after the last one that the heartbeat has not come
 * further than it was, and one of a Wormhole with firmware before 19.4, which may go on counting.
 */

#include <stdint.h>

struct card_watch;
struct snapshot;
struct snapshot_card;
struct snapshot_left;

/* A heartbeat that does not change for so long stands still. */
#define CARD_WATCH_STILL_NS UINT64_C(3000000000)

/*
 * Beats per second that are far beyond any firmware: it counts how often it has read its sensors. So
 * the count may wrap around, which is no reset, but may not leap.
 */
#define CARD_WATCH_BEATS UINT64_C(1000000)

/* How long a card that nobody has is remembered after it was removed. */
#define CARD_WATCH_KEEP_NS UINT64_C(3600000000000)

/* 0 or -ENOMEM. */
int card_watch_new(struct card_watch **ret_watch);
struct card_watch *card_watch_free(struct card_watch *watch);

/*
 * Adds to a snapshot with all of the driver's cards, and nothing else of the host yet, what is
 * remembered. @began_ns: when the first of their files was read, CLOCK_MONOTONIC like @now_ns. Readings
 * of two threads may overlap, and the older one come last: its counters would seem to go back, so they
 * are compared only if the reading began after the last one was applied. 0 or -ENOMEM.
 */
int card_watch_apply(struct card_watch *watch, uint64_t began_ns, uint64_t now_ns,
		     struct snapshot *snapshot);

/* Remembers who holds which card. @snapshot is finished and has all processes. */
void card_watch_learn(struct card_watch *watch, const struct snapshot *snapshot);

/* What another reader remembers, for one that has just started. */
void card_watch_tell(struct card_watch *watch, uint64_t now_ns, const struct snapshot_card *card);
void card_watch_tell_left(struct card_watch *watch, const struct snapshot_card *card,
			  const struct snapshot_left *left);
