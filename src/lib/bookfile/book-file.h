/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Creates this process's book: a memfd, mapped once and then sealed, so that from then on only this
 * mapping can write to it and nobody can truncate it. Called with the gate held.
 */

struct writer;

/* NULL if there can be none; the process then continues untracked. */
struct writer *book_file_make(void);
