/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * gzip for answers. A document becomes a whole file. The stream is one file without an end, made of
 * pieces that do not depend on each other: a message is compressed once, and all listeners are sent
 * the same bytes, whatever else they have received.
 *
 * Each function returns a new body, charged to the purse of @plain, or NULL: no memory, or no room.
 */

struct body;
struct body_purse;

/* A whole file. */
struct body *pack_document(const struct body *plain);

/* What a file begins with. */
struct body *pack_begin(struct body_purse *purse);

/* A piece of it. */
struct body *pack_piece(const struct body *plain);

/* The same without compression, for short texts and threads that must not spend time on it. */
struct body *pack_stored(const struct body *plain);
