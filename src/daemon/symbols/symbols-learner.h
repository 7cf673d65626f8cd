/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names are found out while their process lives: afterwards its files may be gone, with its container for
 * one. A thread of its own goes through the books and asks for the frames of stacks that have come in since
 * its last visit. One user's books at a time and a limited number of questions, because a process that
 * looks into files serves one user and is not started too often.
 */

#include <stddef.h>
#include <stdint.h>

struct loop;
struct registry;
struct symbols;
struct symbols_learner;

#define SYMBOLS_LEARNER_S 2u           /* between two turns */
#define SYMBOLS_LEARNER_QUESTIONS 256u /* of one turn: what one process answers */
#define SYMBOLS_LEARNER_STACKS 256u    /* of one book in one turn; reading them holds its lock */

struct symbols_learner_config {
	struct loop *loop;
	struct registry *registry;
	struct symbols *symbols;
};

/* 0 or a negative errno. */
int symbols_learner_new(struct symbols_learner **ret_learner,
			const struct symbols_learner_config *config);

/* From the loop's thread, before those above go. */
struct symbols_learner *symbols_learner_free(struct symbols_learner *learner);
