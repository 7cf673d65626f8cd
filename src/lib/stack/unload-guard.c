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

struct unload_guard {
	uintptr_t low; /* of the whole file */
	uintptr_t high;
	uintptr_t map;    /* the loader's record of it */
	uintptr_t tables; /* depends on the size of nearly everything else in the file */
	uintptr_t place;  /* as in the mark */
	uint64_t words[2];
};

static struct unload_guard unload_guard_table[UNLOAD_GUARD_MAX];
static size_t unload_guard_count;
static uint32_t unload_guard_generation; /* of all of them */

/* Pairs with unload_guard_store(): a reader of the new value also sees the generation, read afterwards. */
static uint64_t unload_guard_load(const uint64_t *field)
{
	return __atomic_load_n(field, __ATOMIC_ACQUIRE);
}

/* After the new generation is stored. */
static void unload_guard_store(uint64_t *field, uint64_t value)
{
	__atomic_store_n(field, value, __ATOMIC_RELEASE);
}

/* In parts, because a path can be too long for a small stack. */
static uint64_t unload_guard_path(const char *path)
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

void unload_guard_mark(uintptr_t start, const void *place, const char *path,
		       struct unload_guard_mark *ret_mark)
{
	struct unload_guard_mark mark = {.place = place};

	if (place && (uintptr_t)place >= start &&
	    (uintptr_t)place - start <= IMAGE_PAGE - sizeof(mark.words)) {
		memcpy(mark.words, place, sizeof(mark.words));
	} else {
		mark.place = NULL;
		mark.words[0] = unload_guard_path(path);
	}
	*ret_mark = mark;
}

uint64_t unload_guard_set(uintptr_t address, const struct unload_guard_mark *mark)
{
	struct linked_file file;
	struct unload_guard *unload_guard = &unload_guard_table[unload_guard_count];

	if (unload_guard_count == UNLOAD_GUARD_MAX || !linked_find(address, &file))
		return 0;
	unload_guard_store(&unload_guard->low, file.low);
	unload_guard_store(&unload_guard->high, file.high);
	unload_guard_store(&unload_guard->map, (uintptr_t)file.map);
	unload_guard_store(&unload_guard->tables, (uintptr_t)file.tables);
	unload_guard_store(&unload_guard->place, (uintptr_t)mark->place);
	unload_guard_store(&unload_guard->words[0], mark->words[0]);
	unload_guard_store(&unload_guard->words[1], mark->words[1]);
	return UINT64_C(1) << unload_guard_count++;
}

void unload_guard_forget(uint32_t generation)
{
	unload_guard_count = 0;
	__atomic_store_n(&unload_guard_generation, generation,
			 __ATOMIC_RELAXED); /* stores follow */
}

static void unload_guard_copy(const struct unload_guard *unload_guard,
			      struct unload_guard *ret_copy)
{
	*ret_copy = (struct unload_guard){
		.low = unload_guard_load(&unload_guard->low),
		.high = unload_guard_load(&unload_guard->high),
		.map = unload_guard_load(&unload_guard->map),
		.tables = unload_guard_load(&unload_guard->tables),
		.place = unload_guard_load(&unload_guard->place),
		.words = {unload_guard_load(&unload_guard->words[0]),
			  unload_guard_load(&unload_guard->words[1])},
	};
}

static bool unload_guard_is_same(const struct unload_guard *unload_guard, bool is_certain)
{
	uint64_t words[2] = {0, 0};
	struct linked_file file;

	/* linked_find() takes a return address, hence + 1. */
	if (!linked_find(unload_guard->low + 1, &file) || file.low != unload_guard->low ||
	    file.high != unload_guard->high || (uintptr_t)file.map != unload_guard->map ||
	    (uintptr_t)file.tables != unload_guard->tables)
		return false;
	if (!is_certain)
		return true;
	if (likely(unload_guard->place))
		memcpy(words, (const void *)unload_guard->place, sizeof(words));
	else
		words[0] = unload_guard_path(linked_path(&file));
	return words[0] == unload_guard->words[0] && words[1] == unload_guard->words[1];
}

bool unload_guard_hold(uint64_t bits, uint64_t certain, uint32_t generation)
{
	for (; bits; bits &= bits - 1) {
		struct unload_guard unload_guard;

		unload_guard_copy(&unload_guard_table[__builtin_ctzll(bits)], &unload_guard);
		/* Otherwise the file may be unloaded at any time. */
		if (__atomic_load_n(&unload_guard_generation, __ATOMIC_RELAXED) != generation ||
		    !unload_guard_is_same(&unload_guard, bits & -bits & certain))
			return false;
	}
	return true;
}
