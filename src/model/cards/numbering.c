/* SPDX-License-Identifier: Apache-2.0 */

/* Sorts cards as UMD does, and reads TT_VISIBLE_DEVICES as it does. */

#include "model/cards/numbering.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/text.h"
#include "model/snapshot.h"

#define NUMBERING_WORD 32u /* longer than a bus address */

enum numbering_order numbering_order(uint32_t version)
{
	return version && version < NUMBERING_VERSION(0, 9, 2) ? NUMBERING_ASIC : NUMBERING_BUS;
}

static bool numbering_has_key(const struct snapshot_card *card, enum numbering_order order)
{
	return order == NUMBERING_BUS ? card->bus != NULL : card->unique_id != 0;
}

static int numbering_compare_nodes(const struct snapshot_card *a, const struct snapshot_card *b)
{
	return bits_compare(a->number, b->number);
}

static int numbering_compare(const struct snapshot_card *a, const struct snapshot_card *b,
			     enum numbering_order order)
{
	bool is_known = order != NUMBERING_NODE && numbering_has_key(a, order);
	int difference = 0;

	if (order == NUMBERING_NODE)
		return numbering_compare_nodes(a, b);
	if (is_known != numbering_has_key(b, order))
		return bits_compare(!is_known, is_known);
	if (is_known && order == NUMBERING_BUS)
		difference = strcmp(a->bus, b->bus);
	else if (is_known)
		difference = bits_compare(a->unique_id, b->unique_id);
	return difference ? difference : numbering_compare_nodes(a, b);
}

struct numbering_context {
	const struct snapshot *snapshot;
	enum numbering_order order;
};

static int numbering_compare_cards(const void *left, const void *right, void *context)
{
	const struct numbering_context *sort = context;

	return numbering_compare(&sort->snapshot->cards[*(const uint32_t *)left],
				 &sort->snapshot->cards[*(const uint32_t *)right], sort->order);
}

enum numbering_order numbering_sort(const struct snapshot *snapshot, enum numbering_order order,
				    struct numbering *cards)
{
	struct numbering_context context = {.snapshot = snapshot, .order = order};

	if (cards->count == 0)
		return order;
	qsort_r(cards->cards, cards->count, sizeof(*cards->cards), numbering_compare_cards,
		&context);
	return order != NUMBERING_NODE &&
			       numbering_has_key(&snapshot->cards[cards->cards[0]], order)
		       ? order
		       : NUMBERING_NODE;
}

bool numbering_differs(const struct snapshot *snapshot, const struct numbering *cards)
{
	for (size_t i = 1; i < cards->count; i++) {
		const struct snapshot_card *a = &snapshot->cards[cards->cards[i - 1]];
		const struct snapshot_card *b = &snapshot->cards[cards->cards[i]];

		if (numbering_compare(a, b, NUMBERING_ASIC) > 0 ||
		    numbering_compare_nodes(a, b) > 0)
			return true;
	}
	return false;
}

static void numbering_add(struct numbering *cards, size_t card)
{
	for (size_t i = 0; i < cards->count; i++) {
		if (cards->cards[i] == card)
			return;
	}
	cards->cards[cards->count++] = (uint32_t)card;
}

/* The next word of a list without the blanks around it; "" = an empty one, which means nothing. */
static bool numbering_word(const char **list, char ret_word[NUMBERING_WORD])
{
	static const char blank[] = " \n\r\t";
	const char *start = *list + strspn(*list, blank);
	size_t length = strcspn(start, ",");

	*list = start + length;
	*list += **list == ',';
	while (length && strchr(blank, start[length - 1]))
		length--;
	if (length >= NUMBERING_WORD)
		return false;
	memcpy(ret_word, start, length);
	ret_word[length] = '\0';
	return true;
}

static bool numbering_add_by_bus(const struct snapshot *snapshot, const char *word,
				 struct numbering *cards)
{
	bool is_found = false;

	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (!snapshot->cards[i].bus || !strstr(snapshot->cards[i].bus, word))
			continue;
		numbering_add(cards, i);
		is_found = true;
	}
	return is_found;
}

static bool numbering_add_by_index(const struct snapshot *snapshot, const struct numbering *all,
				   const char *word, struct numbering *cards)
{
	uint64_t index;

	if (text_parse_u64(word, &index) < 0)
		return false;
	if (all) {
		if (index < all->count)
			numbering_add(cards, all->cards[index]);
		return index < all->count;
	}
	for (size_t i = 0; i < snapshot->card_count; i++) {
		if (snapshot->cards[i].number == index) {
			numbering_add(cards, i);
			return true;
		}
	}
	return false;
}

bool numbering_visible(const struct snapshot *snapshot, const struct numbering *all,
		       const char *list, struct numbering *ret_cards)
{
	ret_cards->count = 0;
	while (*list) {
		char word[NUMBERING_WORD];
		bool is_bus;

		if (!numbering_word(&list, word))
			return false;
		if (!*word)
			continue;
		is_bus = strpbrk(word, ":.") &&
			 strspn(word, "0123456789abcdefABCDEF.:") == strlen(word);
		if (is_bus ? !numbering_add_by_bus(snapshot, word, ret_cards)
			   : !numbering_add_by_index(snapshot, all, word, ret_cards))
			return false;
	}
	return true;
}

uint32_t numbering_parse_version(const char *path)
{
	static const char name[] = "/libtt-umd.so.";
	const char *at = strrchr(path, '/');
	uint32_t version = 0;

	if (!at || strncmp(at, name, sizeof(name) - 1) != 0)
		return 0;
	at += sizeof(name) - 1;
	for (int part = 0; part < 3; part++) {
		char *end;
		unsigned long value = strtoul(at, &end, 10);

		/* A link such as "libtt-umd.so.0" does not say. */
		if (end == at || value > UINT8_MAX || (part < 2 && *end != '.'))
			return 0;
		version = version << 8 | (uint32_t)value;
		at = end + 1;
	}
	return version;
}
