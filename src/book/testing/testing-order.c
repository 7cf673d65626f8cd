/* SPDX-License-Identifier: Apache-2.0 */

/* An exhaustive search over all states, each visited once. */

#include "book/testing/testing-order.h"

#undef NDEBUG
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

struct order_state {
	uint64_t done; /* stores */
	uint16_t loaded;
	uint8_t step; /* first of the group of loads */
	uint8_t registers[TESTING_ORDER_REGISTERS];
	uint8_t values[TESTING_ORDER_LOADS];
};

_Static_assert(sizeof(struct order_state) == 32, "no padding: states are compared as bytes");

struct order_search {
	const struct testing_reader *reader;
	struct testing_owner owner;
	int without; /* barrier of the reader */
	struct testing_order result;

	struct order_state *seen; /* a hash table; step 255 = free */
	uint64_t size;
	struct order_state *open; /* a stack */
	uint64_t open_count, open_size;
};

static uint64_t order_all_before(const struct testing_owner *owner)
{
	return owner->count ? ~UINT64_C(0) >> (64 - owner->count) : 0;
}

static void order_store(struct testing_owner *owner, uint8_t place, uint8_t value, uint64_t before)
{
	assert(owner->count < TESTING_ORDER_STORES && place < TESTING_ORDER_PLACES);
	for (uint32_t i = 0; i < owner->count; i++) {
		if (owner->place[i] == place)
			before |= UINT64_C(1) << i;
	}
	owner->place[owner->count] = place;
	owner->value[owner->count] = value;
	owner->before[owner->count++] = before;
}

void testing_owner_store(struct testing_owner *owner, uint8_t place, uint8_t value)
{
	order_store(owner, place, value, owner->behind_barrier);
}

void testing_owner_release(struct testing_owner *owner, uint8_t place, uint8_t value, int number)
{
	order_store(owner, place, value,
		    number == owner->without ? owner->behind_barrier : order_all_before(owner));
}

void testing_owner_barrier(struct testing_owner *owner, int number)
{
	if (number != owner->without)
		owner->behind_barrier = order_all_before(owner);
}

/* Drops the stores that are never loaded. Barriers name all stores before them, so none is lost. */
static void order_project(struct testing_owner *owner, uint32_t places)
{
	struct testing_owner all = *owner;

	owner->count = 0;
	for (uint32_t i = 0; i < all.count; i++) {
		uint64_t before = 0;
		uint32_t kept = 0;

		if (!(places >> all.place[i] & 1))
			continue;
		for (uint32_t k = 0; k < i; k++) {
			if (!(places >> all.place[k] & 1))
				continue;
			before |= (all.before[i] >> k & 1) << kept++;
		}
		owner->place[owner->count] = all.place[i];
		owner->value[owner->count] = all.value[i];
		owner->before[owner->count++] = before;
	}
}

static uint8_t order_load(const struct testing_owner *owner, uint64_t done, uint8_t place)
{
	for (uint32_t i = owner->count; i-- > 0;) {
		if (owner->place[i] == place && done >> i & 1)
			return owner->value[i];
	}
	return 0;
}

/* The loads that may be reordered: those of a step, and of the next if no barrier is between. */
static uint32_t order_group(const struct order_search *search, uint32_t step,
			    uint8_t ret_places[TESTING_ORDER_LOADS], uint32_t *ret_end)
{
	uint32_t count = 0;

	do {
		for (const uint8_t *place = search->reader->loads[step];
		     *place != TESTING_ORDER_PLACES; place++) {
			assert(count < TESTING_ORDER_LOADS);
			ret_places[count++] = *place;
		}
	} while ((int)step++ == search->without && step < search->reader->steps);
	*ret_end = step;
	return count;
}

static uint64_t order_hash(const struct order_state *state)
{
	uint64_t words[4], hash = 0;

	memcpy(words, state, sizeof(words));
	for (uint32_t i = 0; i < 4; i++) {
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static bool order_insert(struct order_search *search, const struct order_state *state)
{
	uint64_t at = order_hash(state);

	for (;; at++) {
		struct order_state *entry = &search->seen[at & (search->size - 1)];

		if (entry->step == UINT8_MAX) {
			*entry = *state;
			return true;
		}
		if (memcmp(entry, state, sizeof(*state)) == 0)
			return false;
	}
}

static void order_grow(struct order_search *search)
{
	struct order_state *old = search->seen;
	uint64_t size = search->size;

	search->size = size ? 2 * size : 1u << 16;
	search->seen = malloc(search->size * sizeof(*search->seen));
	assert(search->seen);
	memset(search->seen, UINT8_MAX, search->size * sizeof(*search->seen));
	for (uint64_t i = 0; i < size; i++) {
		if (old[i].step != UINT8_MAX)
			(void)order_insert(search, &old[i]); /* it is new there */
	}
	free(old);
}

static void order_visit(struct order_search *search, const struct order_state *state)
{
	if (search->result.states * 2 >= search->size)
		order_grow(search);
	if (!order_insert(search, state))
		return;
	search->result.states++;
	if (search->open_count == search->open_size) {
		search->open_size = search->open_size ? 2 * search->open_size : 1024;
		search->open = realloc(search->open, search->open_size * sizeof(*search->open));
		assert(search->open);
	}
	search->open[search->open_count++] = *state;
}

static void order_end(struct order_search *search, enum testing_verdict verdict)
{
	search->result.right += verdict == TESTING_RIGHT;
	search->result.is_wrong |= verdict == TESTING_WRONG;
}

/* All loads of a group were made: the reader evaluates them and continues with the next. */
static void order_fold(struct order_search *search, struct order_state *state, uint32_t end)
{
	const uint8_t *values = state->values;
	enum testing_verdict verdict = TESTING_GO_ON;

	for (; state->step < end && verdict == TESTING_GO_ON; state->step++) {
		const uint8_t *place = search->reader->loads[state->step];

		verdict = search->reader->fold(state->step, values, state->registers);
		while (*place++ != TESTING_ORDER_PLACES)
			values++;
	}
	if (verdict != TESTING_GO_ON) {
		order_end(search, verdict);
		return;
	}
	state->loaded = 0;
	memset(state->values, 0, sizeof(state->values));
	order_visit(search, state);
}

static void order_make_loads(struct order_search *search, const struct order_state *state)
{
	uint8_t places[TESTING_ORDER_LOADS];
	uint32_t end, count = order_group(search, state->step, places, &end);

	for (uint32_t i = 0; i < count; i++) {
		struct order_state next = *state;
		bool is_free = !(state->loaded >> i & 1);

		for (uint32_t k = 0; k < i; k++) /* the same place: in order */
			is_free &= places[k] != places[i] || state->loaded >> k & 1;
		if (!is_free)
			continue;
		next.loaded |= (uint16_t)(1u << i);
		next.values[i] = order_load(&search->owner, state->done, places[i]);
		if (next.loaded + 1u == 1u << count)
			order_fold(search, &next, end);
		else
			order_visit(search, &next);
	}
}

static void order_judge(struct order_search *search, const struct order_state *state)
{
	uint8_t memory[TESTING_ORDER_PLACES];

	for (uint8_t i = 0; i < TESTING_ORDER_PLACES; i++)
		memory[i] = order_load(&search->owner, state->done, i);
	order_end(search, search->reader->judge(memory));
}

struct testing_order testing_order_run(const struct testing_reader *reader, int owner_without,
				       int reader_without)
{
	struct order_search search = {
		.reader = reader,
		.owner = {.without = owner_without},
		.without = reader_without,
	};
	struct order_state state = {0};
	uint32_t places = reader->judge ? UINT32_MAX : 0;

	reader->write(&search.owner);
	for (uint32_t i = 0; i < reader->steps; i++) {
		for (const uint8_t *place = reader->loads[i]; *place != TESTING_ORDER_PLACES;
		     place++)
			places |= UINT32_C(1) << *place;
	}
	order_project(&search.owner, places);
	order_visit(&search, &state);
	while (search.open_count > 0 && !search.result.is_wrong) {
		state = search.open[--search.open_count];
		if (reader->judge)
			order_judge(&search, &state);
		else
			order_make_loads(&search, &state);
		for (uint32_t i = 0; i < search.owner.count; i++) {
			struct order_state next = state;

			next.done |= UINT64_C(1) << i;
			if (next.done != state.done && (search.owner.before[i] & ~state.done) == 0)
				order_visit(&search, &next);
		}
	}
	free(search.seen);
	free(search.open);
	return search.result;
}
