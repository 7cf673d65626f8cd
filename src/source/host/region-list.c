/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Names are sorted by owner, which numbers each owner's, and then by that number: every owner's
 * first comes before any owner's second. The names of cards are not searched for but known, so they
 * are found however many files there are. Not a struct quota: it would give the room to the names that are
 * read first, and the folder's order is anybody's choice.
 */

#include "source/host/region-list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "model/snapshot.h"
#include "source/host/region.h"

struct region_names {
	struct region_name *list;
	size_t count, capacity;
};

static void region_names_cleanup(struct region_names *names)
{
	free(names->list);
}

/* 0, also for a file that is not there; or -ENOMEM. */
static int region_names_add(struct region_names *names, int folder, const char *text, bool is_cards)
{
	struct region_name *grown;
	struct stat st;

	if (fstatat(folder, text, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	grown = array_grow(names->list, &names->capacity, names->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	names->list = grown;
	grown += names->count++;
	*grown = (struct region_name){.user = st.st_uid, .is_cards = is_cards};
	memcpy(grown->text, text, bits_min(strlen(text), REGION_NAME_MAX - 1));
	return 0;
}

static int region_names_of_cards(struct region_names *names, int folder,
				 const struct snapshot *snapshot)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < snapshot->card_count; i++) {
		char text[REGION_NAME_MAX];

		if (!snapshot->cards[i].unique_id)
			continue;
		snprintf(text, sizeof(text), "tt_device_%" PRIu64 "_memory",
			 snapshot->cards[i].unique_id);
		r = region_names_add(names, folder, text, true);
	}
	return r;
}

static bool region_names_has(const struct region_names *names, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names->list[i].text, text) == 0)
			return true;
	}
	return false;
}

static int region_compare_owners(const void *left, const void *right)
{
	const struct region_name *a = left, *b = right;

	if (a->is_cards != b->is_cards)
		return bits_compare(b->is_cards, a->is_cards);
	if (a->user != b->user)
		return bits_compare(a->user, b->user);
	return strcmp(a->text, b->text);
}

static int region_compare_turns(const void *left, const void *right)
{
	const struct region_name *a = left, *b = right;

	/* Those of cards are all first in turn. */
	if (a->turn != b->turn)
		return bits_compare(a->turn, b->turn);
	return region_compare_owners(a, b);
}

static size_t region_names_order(struct region_names *names)
{
	struct region_name *list = names->list;
	size_t count = 0;

	if (names->count == 0)
		return 0;
	qsort(list, names->count, sizeof(*list), region_compare_owners);
	for (size_t i = 1; i < names->count; i++) {
		if (!list[i].is_cards && !list[i - 1].is_cards && list[i].user == list[i - 1].user)
			list[i].turn = list[i - 1].turn + 1;
	}
	qsort(list, names->count, sizeof(*list), region_compare_turns);
	while (count < bits_min(names->count, REGION_FILES_MAX) &&
	       list[count].turn < REGION_OWNER_MAX)
		count++;
	return count;
}

int region_list(DIR *listing, const struct snapshot *snapshot, struct region_name **ret_names,
		size_t *ret_left_out)
{
	CLEANUP(region_names_cleanup) struct region_names names = {0};
	int r = region_names_of_cards(&names, dirfd(listing), snapshot);
	size_t cards = names.count, looked = 0, count;
	const struct dirent *item;
	uint64_t id;

	while (r == 0 && (item = readdir(listing))) {
		if (!region_is_name(item->d_name, &id) ||
		    region_names_has(&names, cards, item->d_name))
			continue;
		if (looked++ < REGION_NAMES_MAX)
			r = region_names_add(&names, dirfd(listing), item->d_name, false);
	}
	if (r < 0)
		return r;
	count = region_names_order(&names);
	*ret_left_out = names.count - count + looked - bits_min(looked, REGION_NAMES_MAX);
	*ret_names = names.list;
	names.list = NULL;
	return (int)count;
}
