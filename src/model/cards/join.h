/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which card a process's device is. A process numbers its devices as it likes: hidden cards shift the
 * numbers, remote chips have no node, old clients say nothing but a number. What is known is used in
 * this order, and each part says which step applied:
 *
 *	uid	the ASIC id that the process declares is a card's
 *	board	it declares serial << 8 | place: the card at that place of the board. Cards without an
 *		ASIC id have this identity, too
 *	region	the process's own row in a region of tt-metal names the chip
 *	open	the driver's nodes that the process has open, numbered as UMD does (numbering.h), of
 *		which TT_VISIBLE_DEVICES leaves some out. A node that was removed keeps its place. If
 *		there are more devices than nodes: numbered among all cards
 *	number	device n is the nth card, numbered as UMD does, where nothing contradicts it
 *
 * What ttmemd has found for a process that we may not inspect is taken from it.
 *
 * A contradiction is: another ASIC id, a remote chip, other nodes open, or none at all. Where cards
 * have neither id nor serial number, rows can be told apart only by number, and open nodes do not
 * contradict.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/snapshot.h"

struct join;

/* A serial number has 64 bits, of which an id keeps 56. */
static inline bool join_is_board(const struct snapshot_card *card, uint64_t id)
{
	return card->serial && card->serial << 8 >> 8 == id >> 8;
}

/* @snapshot has its cards and claims; it is borrowed. NULL: out of memory. */
struct join *join_new(struct snapshot *snapshot);
struct join *join_free(struct join *join);
void join_cleanup(struct join **join);

/* The id under which the chip is known: that of the card which @id means, else @id itself. */
uint64_t join_id(const struct join *join, uint64_t id);

/* A card on the board whose serial number @id is made of; NULL if there is none. */
const struct snapshot_card *join_board(const struct join *join, uint64_t id);

/*
 * Joins all parts that have not been yet, those of living processes first: a card without an id is one
 * chip only, the first that a user's processes know.
 */
void join_all(struct join *join);

/* At the end: parts have the ids of their cards. What processes say about those is nobody else's. */
void join_name_cards(struct join *join);

/* The id of a card: its ASIC id, else serial << 8 | place; 0 = none. */
uint64_t join_card_id(const struct join *join, size_t card);

/* For JSON and text. */
const char *join_name(uint32_t joined);
