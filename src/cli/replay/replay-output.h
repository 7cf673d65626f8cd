/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verdict of `ttmem replay`, for people and for scripts. */

#include <stdbool.h>
#include <stdint.h>

#include "answers/fields.h"

struct document;
struct refit_margin;
struct replay_device;
struct replay_walk;

void replay_text(const struct replay_walk *walk);
void replay_json(const struct replay_walk *walk, uint64_t time_ns);

extern const struct document replay_document; /* its row: the walk */

/* How tight a memory of a device was. */
struct replay_margin {
	const struct replay_device *device;
	const struct refit_margin *margin;
	uint64_t at_ns; /* since the start of the recording */
	uint32_t type;
};

extern const struct field replay_margin_fields[];
#define REPLAY_MARGIN_TABLE "pid,device,type,banks,bank_size,free,share,largest,at_ns"
/* For a struct replay_device, those that are known one after the other; NULL = no more. */
const void *replay_each_margin(const void *context, size_t *at, struct fields_room *room);

/* What is replayed, and what the figures leave out: lines for users, one by one. False: no more. */
#define REPLAY_NOTE 256u
#define REPLAY_NOTES 12u /* at most */
bool replay_note(const struct replay_walk *walk, unsigned int number, char ret_note[REPLAY_NOTE]);
