/* SPDX-License-Identifier: Apache-2.0 */

/* The table of rules: sets of four entries, one cache line each. */

#include "lib/stack/rules.h"

#include "base/bits.h"
#include "base/hash.h"

#define RULES_SETS 2048u
#define RULES_WAYS 4u
#define RULES_KIND_SHIFT 56 /* user addresses are below that */

struct rules_entry {
	uint64_t key;   /* the address, and above it the kind; 0 = empty */
	uint64_t moves; /* from rules_pack() */
};

static struct rules_entry rules_table[RULES_SETS][RULES_WAYS] __attribute__((aligned(CACHE_LINE)));

_Static_assert(sizeof(rules_table[0]) == CACHE_LINE, "a set is a line");

static struct rules_entry *rules_set(uintptr_t address)
{
	return rules_table[address * HASH_K0 >> 53 & (RULES_SETS - 1)];
}

static bool rules_is_of(uint64_t key, uintptr_t address)
{
	return (key & ((UINT64_C(1) << RULES_KIND_SHIFT) - 1)) == address && key != 0;
}

#if RULE_HAS_RA

/* In units of 8 bytes, each with a sign. */
#define RULES_BITS 21
#define RULES_KEPT ((1 << (RULES_BITS - 1)) - 1)

static uint64_t rules_field(int32_t offset)
{
	int64_t units = offset == RULE_KEPT ? RULES_KEPT : offset / 8;

	return (uint64_t)units & ((UINT64_C(1) << RULES_BITS) - 1);
}

static int32_t rules_offset(uint64_t field)
{
	int64_t units = (int64_t)(field << (64 - RULES_BITS)) >> (64 - RULES_BITS);

	return units == RULES_KEPT ? RULE_KEPT : (int32_t)units * 8;
}

static uint64_t rules_pack(const struct rule *rule)
{
	return rules_field(rule->ra) << 43 | rules_field(rule->fp) << 22 | rules_field(rule->cfa);
}

static void rules_unpack(uint64_t moves, struct rule *rule)
{
	rule->cfa = rules_offset(moves);
	rule->fp = rules_offset(moves >> 22);
	rule->ra = rules_offset(moves >> 43);
}

#else

static uint64_t rules_pack(const struct rule *rule)
{
	return (uint64_t)(uint32_t)rule->fp << 32 | (uint32_t)rule->cfa;
}

static void rules_unpack(uint64_t moves, struct rule *rule)
{
	rule->cfa = (int32_t)(uint32_t)moves;
	rule->fp = (int32_t)(uint32_t)(moves >> 32);
}

#endif

bool rules_find(uintptr_t address, struct rule *ret_rule)
{
	struct rules_entry *set = rules_set(address);

	for (size_t i = 0; i < RULES_WAYS; i++) {
		/*
		 * Pairs with the releases in rules_put(): the moves are not older than the key, and
		 * if they are newer the key has changed.
		 */
		uint64_t key = __atomic_load_n(&set[i].key, __ATOMIC_ACQUIRE);
		uint64_t moves;

		if (!rules_is_of(key, address))
			continue;
		moves = __atomic_load_n(&set[i].moves, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&set[i].key, __ATOMIC_RELAXED) != key)
			return false;
		ret_rule->kind = key >> RULES_KIND_SHIFT;
		rules_unpack(moves, ret_rule);
		return true;
	}
	return false;
}

void rules_put(uintptr_t address, const struct rule *rule)
{
	struct rules_entry *set = rules_set(address);
	/* In a full set the victim is arbitrary. */
	struct rules_entry *entry = &set[address / 8 % RULES_WAYS];

	if (address >> RULES_KIND_SHIFT)
		return;
	for (size_t i = 0; i < RULES_WAYS; i++) {
		uint64_t key = __atomic_load_n(&set[i].key, __ATOMIC_RELAXED);

		if (key == 0 || rules_is_of(key, address)) {
			entry = &set[i];
			break;
		}
	}
	__atomic_store_n(&entry->key, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&entry->moves, rules_pack(rule), __ATOMIC_RELEASE);
	__atomic_store_n(&entry->key, (uint64_t)rule->kind << RULES_KIND_SHIFT | address,
			 __ATOMIC_RELEASE);
}

void rules_forget(void)
{
	for (size_t i = 0; i < RULES_SETS; i++) {
		for (size_t k = 0; k < RULES_WAYS; k++) {
			struct rules_entry *entry = &rules_table[i][k];

			/* Stored only if set: an unwritten page takes no memory. */
			if (__atomic_load_n(&entry->key, __ATOMIC_RELAXED))
				__atomic_store_n(&entry->key, 0, __ATOMIC_RELAXED);
		}
	}
}
