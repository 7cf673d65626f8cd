/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Making this process's book: a memfd, mapped once and then sealed, so that from then on only this
 * mapping can write it and nobody can cut it short. Called with the gate held.
 */

struct writer;

/* NULL if there can be none; the process then goes on untracked. */
struct writer *make_book(void);
