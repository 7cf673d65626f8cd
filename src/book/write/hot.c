/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shard and writer as one unit, so that the compiler can merge an event's steps into one function:
 * with calls between them they save and restore a dozen registers and pass the buffer in memory, and
 * the number of stores is what bounds an event. It makes an event a tenth faster.
 */

#include "book/write/shard-free.c" /* NOLINT(bugprone-suspicious-include) */
#include "book/write/shard.c"      /* NOLINT(bugprone-suspicious-include) */
#include "book/write/writer.c"     /* NOLINT(bugprone-suspicious-include) */
