/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Resolves names while their process lives: later its files may be gone, e.g. with its container. A
 * separate thread goes through the books and resolves the frames of stacks added since its last
 * visit. Each turn covers the books of one user and a limited number of queries, because a
 * symbolizer process serves one user and must not be started too often.
 */

#include <stddef.h>
#include <stdint.h>

struct loop;
struct registry;
struct symbols;
struct symbols_learner;

#define SYMBOLS_LEARNER_S 2u           /* between two turns */
#define SYMBOLS_LEARNER_QUESTIONS 256u /* per turn: what one process answers */
#define SYMBOLS_LEARNER_STACKS 256u    /* per book and turn; reading them holds its lock */

struct symbols_learner_config {
	struct loop *loop;
	struct registry *registry;
	struct symbols *symbols;
};

/* 0 or a negative errno. */
int symbols_learner_new(struct symbols_learner **ret_learner,
			const struct symbols_learner_config *config);

/* From the loop's thread, before the members of the config are freed. */
struct symbols_learner *symbols_learner_free(struct symbols_learner *learner);
