/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verdict of `ttmem replay`, for people and for scripts. */

#include <stdbool.h>
#include <stdint.h>

struct replay_walk;

/* Would it have run? */
enum replay_verdict {
	REPLAY_RUNS = 0,
	REPLAY_FAILS = 1,
	REPLAY_NOT_KNOWN = 2, /* nothing could be judged */
};

enum replay_verdict replay_verdict(const struct replay_walk *walk);

void replay_text(const struct replay_walk *walk);
void replay_json(const struct replay_walk *walk, uint64_t time_ns);

/* "too large", "full", ...: words of documents. */
const char *replay_why_name(uint32_t why);

/* What is replayed, and what the figures leave out: lines for users, one by one. False: no more. */
#define REPLAY_NOTE 256u
bool replay_note(const struct replay_walk *walk, unsigned int number, char ret_note[REPLAY_NOTE]);
