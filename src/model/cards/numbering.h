/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How UMD, tt-metal's user-mode driver, numbers the cards that a process sees: device 0 is the first in
 * an order that has changed, and TT_VISIBLE_DEVICES only says which cards are left out, whatever the
 * order of its words. A word is an index into the order, or a part of a bus address.
 *
 *	UMD		order		an index is one of
 *	before 0.9.2	ASIC id		the nodes' numbers
 *	0.9.2		bus address	the nodes' numbers
 *	since 0.9.3	bus address	the cards in the order of their bus addresses
 *
 * The nodes' own numbers say nothing: the driver gives them as it finds the cards, and on a Galaxy by
 * tray.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshot;

enum numbering_order {
	NUMBERING_BUS = 0,
	NUMBERING_ASIC = 1,
	NUMBERING_NODE = 2, /* where neither is known */
};

#define NUMBERING_VERSION(major, minor, patch) \
	((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (uint32_t)(patch))

/* Cards as indices into snapshot->cards; device n is the nth. */
struct numbering {
	uint32_t *cards;
	size_t count;
};

/* The order of a version of UMD, NUMBERING_VERSION(); 0 = not known: that of today. */
enum numbering_order numbering_order(uint32_t version);

/*
 * Sorts. Cards of which the key is not known come last, by their nodes; NUMBERING_NODE is returned if
 * that are all of them.
 */
enum numbering_order numbering_sort(const struct snapshot *snapshot, enum numbering_order order,
				    struct numbering *cards);

/* Whether an older UMD, or the nodes, would give cards other numbers. @cards: by their bus addresses. */
bool numbering_differs(const struct snapshot *snapshot, const struct numbering *cards);

/*
 * Finds the cards that @list, the value of TT_VISIBLE_DEVICES, leaves, in any order. An index is one
 * into @all, or a node's number if @all is NULL. False: @list is not one that UMD accepts.
 */
bool numbering_visible(const struct snapshot *snapshot, const struct numbering *all,
		       const char *list, struct numbering *ret_cards);

/* The version at the end of the path of UMD's library, "libtt-umd.so.0.9.4"; 0 = it is another file. */
uint32_t numbering_parse_version(const char *path);
