/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table of files. An entry is written before its bit is given out, and stays valid until the
 * generation rises. A reader of an entry that is being rewritten sees the new generation before it
 * looks at any file.
 */

#include "lib/stack/unload-guard.h"

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "lib/process/linked.h"
#include "lib/stack/image.h"

struct guard {
	uintptr_t low; /* of the whole file */
	uintptr_t high;
	uintptr_t map;    /* the loader's record of it */
	uintptr_t tables; /* depends on the size of nearly everything else in the file */
	uintptr_t place;  /* as in the mark */
	uint64_t words[2];
};

static struct guard guard_table[GUARD_MAX];
static size_t guard_count;
static uint32_t guard_generation; /* of all of them */

/* Pairs with guard_store(): a reader of the new value also sees the generation, read afterwards. */
static uint64_t guard_load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

/* After the new generation is stored. */
static void guard_store(uint64_t *field, uint64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

/* In parts, because a path can be too long for a small stack. */
static uint64_t guard_path(const char *path)
{
	uint64_t hash = 0;
	char part[64];
	size_t n;

	do {
		n = linked_copy(path, part, sizeof(part));
		hash = hash_fold(hash ^ HASH_K0, hash_bytes(part, n) ^ HASH_K1);
		path += n;
	} while (n + 1 == sizeof(part));
	return hash;
}

void guard_mark(uintptr_t start, const void *place, const char *path, struct guard_mark *ret_mark)
{
	struct guard_mark mark = {.place = place};

	if (place && (uintptr_t)place >= start &&
	    (uintptr_t)place - start <= IMAGE_PAGE - sizeof(mark.words)) {
		memcpy(mark.words, place, sizeof(mark.words));
	} else {
		mark.place = NULL;
		mark.words[0] = guard_path(path);
	}
	*ret_mark = mark;
}

uint64_t guard_set(uintptr_t address, const struct guard_mark *mark)
{
	struct linked_file file;
	struct guard *guard = &guard_table[guard_count];

	if (guard_count == GUARD_MAX || !linked_find(address, &file))
		return 0;
	guard_store(&guard->low, file.low);
	guard_store(&guard->high, file.high);
	guard_store(&guard->map, (uintptr_t)file.map);
	guard_store(&guard->tables, (uintptr_t)file.tables);
	guard_store(&guard->place, (uintptr_t)mark->place);
	guard_store(&guard->words[0], mark->words[0]);
	guard_store(&guard->words[1], mark->words[1]);
	return UINT64_C(1) << guard_count++;
}

void guard_forget(uint32_t generation)
{
	guard_count = 0;
	__atomic_store_n(&guard_generation, generation, __ATOMIC_RELAXED); /* stores follow */
}

static void guard_copy(const struct guard *guard, struct guard *ret_copy)
{
	*ret_copy = (struct guard){
		.low = guard_load(&guard->low),
		.high = guard_load(&guard->high),
		.map = guard_load(&guard->map),
		.tables = guard_load(&guard->tables),
		.place = guard_load(&guard->place),
		.words = {guard_load(&guard->words[0]), guard_load(&guard->words[1])},
	};
}

static bool guard_is_same(const struct guard *guard, bool is_certain)
{
	uint64_t words[2] = {0, 0};
	struct linked_file file;

	/* linked_find() takes a return address, hence + 1. */
	if (!linked_find(guard->low + 1, &file) || file.low != guard->low ||
	    file.high != guard->high || (uintptr_t)file.map != guard->map ||
	    (uintptr_t)file.tables != guard->tables)
		return false;
	if (!is_certain)
		return true;
	if (likely(guard->place))
		memcpy(words, (const void *)guard->place, sizeof(words));
	else
		words[0] = guard_path(linked_path(&file));
	return words[0] == guard->words[0] && words[1] == guard->words[1];
}

bool guard_hold(uint64_t bits, uint64_t certain, uint32_t generation)
{
	for (; bits; bits &= bits - 1) {
		struct guard guard;

		guard_copy(&guard_table[__builtin_ctzll(bits)], &guard);
		/* Otherwise the file may be unloaded at any time. */
		if (__atomic_load_n(&guard_generation, __ATOMIC_RELAXED) != generation ||
		    !guard_is_same(&guard, bits & -bits & certain))
			return false;
	}
	return true;
}
