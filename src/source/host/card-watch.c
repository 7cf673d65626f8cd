/* SPDX-License-Identifier: Apache-2.0 */

/* A linear list: machines have few cards. */

#include "source/host/card-watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "model/amount.h"
#include "model/cards/condition.h"
#include "model/snapshot.h"

#define CARD_WATCH_TEXT 64u

/* Parts, as snapshot->left has them. */
struct card_watch_parts {
	struct snapshot_left *list;
	size_t count, capacity;
};

struct card_watch_entry {
	char bus[CARD_WATCH_TEXT]; /* "" = the driver did not tell; then by number */
	uint32_t number;
	uint64_t unique_id, serial; /* 0 = not known; likewise "" */
	char arch[CARD_WATCH_TEXT], card[CARD_WATCH_TEXT], firmware[CARD_WATCH_TEXT];

	uint32_t state;
	bool is_seen; /* in this reading */
	uint64_t gone_ns;
	uint64_t folder;    /* see struct snapshot_card */
	bool has_heartbeat; /* of the last reading that had one, at heartbeat_ns; likewise trips */
	uint32_t heartbeat;
	uint64_t heartbeat_ns;
	uint64_t still_ns; /* since when it has been the same; 0 = not known */
	uint32_t trips;    /* the most that were read; UINT32_MAX = none yet */

	struct card_watch_parts holders; /* who has memory of it */
	struct card_watch_parts left; /* who had when it was reset or removed, and still shows it */
};

struct card_watch {
	pthread_mutex_t lock;
	struct card_watch_entry *entries;
	size_t count, capacity;
	uint64_t applied_ns; /* when a reading was applied last */
	bool is_late;        /* the one that is applied now began before that */
};

int card_watch_new(struct card_watch **ret_watch)
{
	struct card_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return -ENOMEM;
	(void)pthread_mutex_init(&watch->lock, NULL); /* cannot fail on Linux */
	*ret_watch = watch;
	return 0;
}

static void card_watch_drop(struct card_watch *watch, size_t index)
{
	free(watch->entries[index].holders.list);
	free(watch->entries[index].left.list);
	watch->count--;
	memmove(&watch->entries[index], &watch->entries[index + 1],
		(watch->count - index) * sizeof(*watch->entries));
}

struct card_watch *card_watch_free(struct card_watch *watch)
{
	if (!watch)
		return NULL;
	while (watch->count)
		card_watch_drop(watch, watch->count - 1);
	free(watch->entries);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
	return NULL;
}

/* Without memory the part is forgotten: it is then shown as if nothing had happened. */
static void card_watch_add_part(struct card_watch_parts *parts, const struct snapshot_left *part)
{
	struct snapshot_left *list =
		array_grow(parts->list, &parts->capacity, parts->count + 1, sizeof(*list));

	if (!list)
		return;
	parts->list = list;
	list[parts->count++] = *part;
}

static void card_watch_move_parts(struct card_watch_parts *to, struct card_watch_parts *from)
{
	for (size_t i = 0; i < from->count; i++)
		card_watch_add_part(to, &from->list[i]);
	from->count = 0;
}

static struct card_watch_entry *card_watch_find(const struct card_watch *watch,
						const struct snapshot_card *card)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct card_watch_entry *entry = &watch->entries[i];

		if (card->bus ? strncmp(entry->bus, card->bus, sizeof(entry->bus) - 1) == 0
			      : !*entry->bus && entry->number == card->number)
			return entry;
	}
	return NULL;
}

/* NULL: no memory, or too many cards. */
static struct card_watch_entry *card_watch_add(struct card_watch *watch,
					       const struct snapshot_card *card)
{
	struct card_watch_entry *entries;

	if (watch->count >= SNAPSHOT_CARDS_MAX)
		return NULL;
	entries = array_grow(watch->entries, &watch->capacity, watch->count + 1, sizeof(*entries));
	if (!entries)
		return NULL;
	watch->entries = entries;
	entries[watch->count] =
		(struct card_watch_entry){.state = card->condition.state, .trips = UINT32_MAX};
	snprintf(entries[watch->count].bus, CARD_WATCH_TEXT, "%s", card->bus ? card->bus : "");
	return &entries[watch->count++];
}

static void card_watch_keep_text(char kept[CARD_WATCH_TEXT], const char *text)
{
	if (text)
		snprintf(kept, CARD_WATCH_TEXT, "%s", text);
}

static void card_watch_keep(struct card_watch_entry *entry, const struct snapshot_card *card)
{
	entry->unique_id = card->unique_id ? card->unique_id : entry->unique_id;
	entry->serial = card->serial ? card->serial : entry->serial;
	card_watch_keep_text(entry->arch, card->arch);
	card_watch_keep_text(entry->card, card->card);
	card_watch_keep_text(entry->firmware, card->firmware);
}

static const char *card_watch_recall_text(struct snapshot *snapshot, const char *told,
					  const char *kept)
{
	return told || !*kept ? told : snapshot_text(snapshot, kept, strlen(kept));
}

/* Fills in what the driver does not tell at present. */
static void card_watch_recall(const struct card_watch_entry *entry, struct snapshot *snapshot,
			      struct snapshot_card *card)
{
	card->unique_id = card->unique_id ? card->unique_id : entry->unique_id;
	card->serial = card->serial ? card->serial : entry->serial;
	card->arch = card_watch_recall_text(snapshot, card->arch, entry->arch);
	card->card = card_watch_recall_text(snapshot, card->card, entry->card);
	card->firmware = card_watch_recall_text(snapshot, card->firmware, entry->firmware);
}

/* Whether the card shows that it was reset, or removed and put back, since the last reading. */
static bool card_watch_was_reset(const struct card_watch_entry *entry, uint64_t now_ns,
				 const struct snapshot_card *card)
{
	const struct snapshot_condition *condition = &card->condition;
	uint64_t most = ((now_ns - entry->heartbeat_ns) / NS_PER_S + 1) * CARD_WATCH_BEATS;

	if (entry->folder && card->folder && entry->folder != card->folder)
		return true;
	/* After a reset it may be 0 for a moment: only more of them mean something. */
	if (condition->has_trips && condition->trips > entry->trips)
		return true;
	return entry->has_heartbeat && condition->has_heartbeat &&
	       condition->heartbeat - entry->heartbeat > most;
}

static void card_watch_heartbeat(struct card_watch_entry *entry, uint64_t now_ns,
				 struct snapshot_condition *condition)
{
	if (!condition->has_heartbeat) {
		entry->still_ns = 0;
		return;
	}
	if (!entry->still_ns || entry->heartbeat != condition->heartbeat)
		entry->still_ns = now_ns;
	else if (now_ns - entry->still_ns >= CARD_WATCH_STILL_NS)
		condition->state = SNAPSHOT_NOT_ANSWERING;
	entry->has_heartbeat = true;
	entry->heartbeat = condition->heartbeat;
	entry->heartbeat_ns = now_ns;
}

/* What the next reading is compared with. */
static void card_watch_note(struct card_watch_entry *entry, uint64_t now_ns,
			    struct snapshot_card *card)
{
	const struct snapshot_condition *condition = &card->condition;

	card_watch_heartbeat(entry, now_ns, &card->condition);
	entry->folder = card->folder ? card->folder : entry->folder;
	if (condition->has_trips && (entry->trips == UINT32_MAX || condition->trips > entry->trips))
		entry->trips = condition->trips;
}

static void card_watch_set(struct card_watch_entry *entry, uint32_t state)
{
	if (condition_is_away(state) && !condition_is_away(entry->state))
		card_watch_move_parts(&entry->left, &entry->holders);
	entry->state = state;
}

/* A card that is in another slot now is not gone. True: this was one, and the other knows all of it. */
static bool card_watch_moved(struct card_watch *watch, struct card_watch_entry *entry)
{
	for (size_t i = 0; entry->unique_id && !entry->is_seen && i < watch->count; i++) {
		struct card_watch_entry *other = &watch->entries[i];

		if (!other->is_seen || other->unique_id != entry->unique_id)
			continue;
		card_watch_set(entry, SNAPSHOT_GONE);
		card_watch_move_parts(&other->left, &entry->left);
		return true;
	}
	return false;
}

static void card_watch_see(struct card_watch *watch, uint64_t now_ns, struct snapshot *snapshot,
			   struct snapshot_card *card)
{
	struct card_watch_entry *entry = card_watch_find(watch, card);

	if (!entry)
		entry = card_watch_add(watch, card);
	if (!entry)
		return;
	entry->is_seen = true;
	entry->number = card->number;
	if (card->condition.state == SNAPSHOT_PRESENT) {
		/* Those who held it when it was seen to be away have been moved already. */
		if (!watch->is_late && card_watch_was_reset(entry, now_ns, card))
			card_watch_move_parts(&entry->left, &entry->holders);
		if (!watch->is_late)
			card_watch_note(entry, now_ns, card);
		/* Another card may have been put into the slot. */
		if (card->unique_id && card->unique_id != entry->unique_id)
			entry->card[0] = entry->firmware[0] = '\0';
		card_watch_keep(entry, card);
	} else {
		entry->still_ns = 0;
		card_watch_recall(entry, snapshot, card);
	}
	card_watch_set(entry, card->condition.state);
}

/* A card that the driver no longer has. 0 or -ENOMEM. */
static int card_watch_miss(struct card_watch_entry *entry, uint64_t now_ns,
			   struct snapshot *snapshot)
{
	struct snapshot_card card = {
		.number = entry->number,
		.bus = *entry->bus ? snapshot_text(snapshot, entry->bus, strlen(entry->bus)) : NULL,
		.condition.state = SNAPSHOT_GONE,
	};
	int r;

	if (entry->state != SNAPSHOT_GONE)
		entry->gone_ns = now_ns;
	entry->has_heartbeat = false;
	entry->trips = UINT32_MAX; /* power may be cycled */
	card_watch_set(entry, SNAPSHOT_GONE);
	card_watch_recall(entry, snapshot, &card);
	r = snapshot_add_card(snapshot, &card);
	return r == -ENOBUFS ? 0 : r;
}

static bool card_watch_is_over(const struct card_watch_entry *entry, uint64_t now_ns)
{
	return !entry->is_seen && entry->state == SNAPSHOT_GONE && !entry->left.count &&
	       now_ns - entry->gone_ns >= CARD_WATCH_KEEP_NS;
}

static int card_watch_add_left(const struct card_watch_entry *entry,
			       const struct snapshot_left *part, struct snapshot *snapshot)
{
	struct snapshot_left left = *part;

	left.node = entry->number;
	left.bus = *entry->bus ? snapshot_text(snapshot, entry->bus, strlen(entry->bus)) : NULL;
	return snapshot_add_left(snapshot, &left);
}

static int card_watch_apply_all(struct card_watch *watch, uint64_t now_ns,
				struct snapshot *snapshot)
{
	size_t cards = snapshot->card_count;
	int r = 0;

	for (size_t i = 0; i < watch->count; i++)
		watch->entries[i].is_seen = false;
	for (size_t i = 0; i < cards; i++)
		card_watch_see(watch, now_ns, snapshot, &snapshot->cards[i]);
	for (size_t i = watch->count; i-- > 0;) {
		if (card_watch_moved(watch, &watch->entries[i]) ||
		    card_watch_is_over(&watch->entries[i], now_ns))
			card_watch_drop(watch, i);
	}
	for (size_t i = 0; r == 0 && i < watch->count; i++) {
		const struct card_watch_parts *left = &watch->entries[i].left;

		if (!watch->entries[i].is_seen)
			r = card_watch_miss(&watch->entries[i], now_ns, snapshot);
		for (size_t k = 0; r == 0 && k < left->count; k++)
			r = card_watch_add_left(&watch->entries[i], &left->list[k], snapshot);
	}
	return r;
}

int card_watch_apply(struct card_watch *watch, uint64_t began_ns, uint64_t now_ns,
		     struct snapshot *snapshot)
{
	int r;

	pthread_mutex_lock(&watch->lock);
	watch->is_late = began_ns < watch->applied_ns;
	if (!watch->is_late)
		watch->applied_ns = now_ns;
	r = card_watch_apply_all(watch, now_ns, snapshot);
	pthread_mutex_unlock(&watch->lock);
	return r;
}

/* Whether the process still shows memory from before. */
static bool card_watch_still(const struct snapshot *snapshot, const struct snapshot_left *left)
{
	struct snapshot_search search = {.pid = left->process.pid};
	const struct snapshot_process *process;

	while ((process = snapshot_next_process(snapshot, &search))) {
		if (!process->alive || !process_id_equal(process->id, left->process))
			continue;
		for (size_t i = 0; i < process->part_count; i++) {
			const struct snapshot_part *part = &process->parts[i];

			if (part->device == left->device && amount_of_part(part, AMOUNT_ALL).used)
				return true;
		}
	}
	return false;
}

/* Forgets those who have ended, or have freed what they had. */
static void card_watch_prune(struct card_watch_parts *parts, const struct snapshot *snapshot)
{
	size_t kept = 0;

	for (size_t i = 0; i < parts->count; i++) {
		if (card_watch_still(snapshot, &parts->list[i]))
			parts->list[kept++] = parts->list[i];
	}
	parts->count = kept;
}

static bool card_watch_has_part(const struct card_watch_parts *parts,
				const struct snapshot_left *part)
{
	for (size_t i = 0; i < parts->count; i++) {
		if (process_id_equal(parts->list[i].process, part->process) &&
		    parts->list[i].device == part->device)
			return true;
	}
	return false;
}

/* @rows: for each device 1 + the index of its entry; 0 = it has none. */
static void card_watch_learn_process(struct card_watch *watch, const uint32_t *rows,
				     const struct snapshot_process *process)
{
	for (size_t i = 0; process->alive && i < process->part_count; i++) {
		const struct snapshot_part *part = &process->parts[i];
		const struct snapshot_left holder = {
			.process = process->id,
			.device = part->device,
		};
		struct card_watch_entry *entry;

		if (!rows[part->row] || !amount_of_part(part, AMOUNT_ALL).used)
			continue;
		entry = &watch->entries[rows[part->row] - 1];
		if (!condition_is_away(entry->state) && !part->before_reset)
			card_watch_add_part(&entry->holders, &holder);
		/* It was away already when it was seen for the first time. A number alone is no proof. */
		else if (condition_is_away(entry->state) && part->joined < SNAPSHOT_JOINED_NUMBER &&
			 !card_watch_has_part(&entry->left, &holder))
			card_watch_add_part(&entry->left, &holder);
	}
}

void card_watch_learn(struct card_watch *watch, const struct snapshot *snapshot)
{
	CLEANUP_FREE uint32_t *rows = calloc(snapshot->device_count + 1, sizeof(*rows));

	if (!rows)
		return; /* the next reading will do */
	pthread_mutex_lock(&watch->lock);
	for (size_t i = 0; i < watch->count; i++) {
		card_watch_prune(&watch->entries[i].left, snapshot);
		if (!condition_is_away(watch->entries[i].state))
			watch->entries[i].holders.count = 0;
	}
	for (size_t i = 0; i < snapshot->device_count; i++) {
		const struct snapshot_device *device = &snapshot->devices[i];
		const struct snapshot_card card = {.number = device->number, .bus = device->bus};
		const struct card_watch_entry *entry = card_watch_find(watch, &card);

		if (entry && (device->present || device->condition.state == SNAPSHOT_GONE))
			rows[i] = (uint32_t)(entry - watch->entries) + 1;
	}
	for (size_t i = 0; i < snapshot->process_count; i++)
		card_watch_learn_process(watch, rows, &snapshot->processes[i]);
	pthread_mutex_unlock(&watch->lock);
}

void card_watch_tell(struct card_watch *watch, uint64_t now_ns, const struct snapshot_card *card)
{
	const struct snapshot_condition *condition = &card->condition;
	struct card_watch_entry *entry;

	pthread_mutex_lock(&watch->lock);
	entry = card_watch_find(watch, card);
	if (!entry)
		entry = card_watch_add(watch, card);
	if (entry) {
		entry->number = card->number;
		entry->gone_ns = now_ns;
		entry->has_heartbeat = condition->has_heartbeat;
		entry->heartbeat = condition->heartbeat;
		entry->heartbeat_ns = now_ns;
		entry->still_ns = condition->has_heartbeat ? now_ns : 0;
		/* The other has waited for long enough. */
		if (entry->still_ns && condition->state == SNAPSHOT_NOT_ANSWERING)
			entry->still_ns -= CARD_WATCH_STILL_NS;
		card_watch_keep(entry, card);
	}
	pthread_mutex_unlock(&watch->lock);
}

void card_watch_tell_left(struct card_watch *watch, const struct snapshot_card *card,
			  const struct snapshot_left *left)
{
	struct card_watch_entry *entry;

	pthread_mutex_lock(&watch->lock);
	entry = card_watch_find(watch, card);
	if (entry)
		card_watch_add_part(&entry->left, left);
	pthread_mutex_unlock(&watch->lock);
}
