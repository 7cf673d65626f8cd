/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table from stack ids to offsets in one block of memory that only grows. An entry's data is
 * complete before the table points to it.
 */

#include "legacy/debug-log/debug-log-names.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/process/private.h"
#include "base/threads/lock.h"
#include "legacy/debug-log/debug-log-demangle.h"
#include "lib/process/linked.h"

/*
 * At an offset: the number of frames, and for each its offset, module, symbol and decoded name (empty = as
 * the symbol), all three with NUL.
 */
struct names_memory {
	uint64_t table[DEBUG_LOG_NAMES_STACKS]; /* id << 32 | offset + 1; 0 = empty */
	uint32_t used, stacks;
	struct debug_log_demangle demangle;
	char bytes[DEBUG_LOG_NAMES_BYTES];
};

#define NAMES_FRAME_MAX \
	(sizeof(uint64_t) + DEBUG_LOG_NAMES_MODULE_MAX + 1 + 2 * (DEBUG_LOG_NAMES_SYMBOL_MAX + 1))

static struct lock names_lock;
static struct names_memory *names_memory; /* NULL until the first stack */

void debug_log_names_open(void)
{
	/* Stored only if set: an unwritten page takes no memory. A child lacks the mapping. */
	if (names_memory) {
		names_lock = LOCK_NULL;
		names_memory = NULL;
	}
}

static uint64_t *names_slot(struct names_memory *memory, uint32_t id, uint32_t at)
{
	return &memory->table[(hash_u64(id) + at) % DEBUG_LOG_NAMES_STACKS];
}

/* The data of @id; NULL = none. */
static const char *names_at(struct names_memory *memory, uint32_t id)
{
	for (uint32_t i = 0; memory && i < DEBUG_LOG_NAMES_STACKS; i++) {
		/* Pairs with the release in debug_log_names_learn(). */
		uint64_t entry = __atomic_load_n(names_slot(memory, id, i), __ATOMIC_ACQUIRE);

		if (entry == 0)
			return NULL;
		if (entry >> 32 == id)
			return memory->bytes + ((uint32_t)entry - 1);
	}
	return NULL;
}

/* Return: the end of what was written. */
static char *names_put_text(char *to, const char *text, size_t max)
{
	size_t length = strnlen(text, max);

	memcpy(to, text, length);
	to[length] = '\0';
	return to + length + 1;
}

/*
 * Whether a frame only reports to ttmem: libttmem-metal.so, and tt-metal's functions that it stands in front
 * of. Readers of books leave out the same (model/sites/stack.h).
 */
static bool names_is_reporting(const char *module, const char *symbol)
{
	static const char shim[] = "libttmem-metal";
	static const char *const classes[] = {"11ttmem_metal", "2tt8tt_metal12GraphTracker"};

	if (strncmp(module, shim, sizeof(shim) - 1) == 0 && strstr(module, ".so"))
		return true;
	if (!symbol || strncmp(symbol, "_ZN", 3) != 0)
		return false;
	symbol += symbol[3] == 'K' ? 4 : 3;
	return strncmp(symbol, classes[0], strlen(classes[0])) == 0 ||
	       strncmp(symbol, classes[1], strlen(classes[1])) == 0;
}

/*
 * Likewise; returns @to unchanged if the address is unknown, or if it @is_first and only reports.
 */
static char *names_put_frame(struct names_memory *memory, char *to, uintptr_t address,
			     bool is_first)
{
	const char *module, *slash, *name;
	Dl_info info;
	uint64_t offset;

	/* The return address may already be in the next function. */
	if (!linked_place((const void *)(address - 1), &info) || !info.dli_fname)
		return to;
	slash = strrchr(info.dli_fname, '/');
	module = slash ? slash + 1 : info.dli_fname;
	if (is_first && names_is_reporting(module, info.dli_sname))
		return to;
	offset = address - (uintptr_t)(info.dli_sname ? info.dli_saddr : info.dli_fbase);
	memcpy(to, &offset, sizeof(offset));
	to = names_put_text(to + sizeof(offset), module, DEBUG_LOG_NAMES_MODULE_MAX);
	to = names_put_text(to, info.dli_sname ? info.dli_sname : "", DEBUG_LOG_NAMES_SYMBOL_MAX);
	name = info.dli_sname ? debug_log_demangle(&memory->demangle, info.dli_sname) : NULL;
	if (name && strlen(name) > DEBUG_LOG_NAMES_SYMBOL_MAX)
		name = NULL;
	return names_put_text(to, name ? name : "", DEBUG_LOG_NAMES_SYMBOL_MAX);
}

/* With the lock held. */
static void names_add(struct names_memory *memory, uint32_t id, const uintptr_t *addresses,
		      size_t count)
{
	uint32_t place = memory->used, i = 0;
	char *to = memory->bytes + place + 1;
	uint32_t frames = 0;

	for (size_t n = 0; n < count && frames < DEBUG_LOG_NAMES_FRAMES; n++) {
		char *end = names_put_frame(memory, to, addresses[n], frames == 0);

		frames += end > to;
		to = end;
	}
	memory->bytes[place] = (char)frames;
	memory->used = (uint32_t)(to - memory->bytes);
	memory->stacks++;
	while (*names_slot(memory, id, i))
		i++;
	/* Pairs with the acquire in names_at(). */
	__atomic_store_n(names_slot(memory, id, i), (uint64_t)id << 32 | (place + 1),
			 __ATOMIC_RELEASE);
}

void debug_log_names_learn(uint32_t id, const uintptr_t *addresses, size_t count)
{
	int saved_errno = errno;
	struct names_memory *memory;

	if (id == 0 || !lock_take(&names_lock))
		return;
	memory = names_memory;
	if (!memory) {
		memory = private_map(sizeof(*memory));
		__atomic_store_n(&names_memory, memory, __ATOMIC_RELEASE);
	}
	if (memory && memory->stacks < DEBUG_LOG_NAMES_STACKS / 4 * 3 &&
	    memory->used + 1 + DEBUG_LOG_NAMES_FRAMES * NAMES_FRAME_MAX <= sizeof(memory->bytes) &&
	    !names_at(memory, id))
		names_add(memory, id, addresses, count);
	lock_drop(&names_lock);
	errno = saved_errno;
}

size_t debug_log_names_find(uint32_t id, struct debug_log_frame *ret_frames, size_t max)
{
	struct names_memory *memory = __atomic_load_n(&names_memory, __ATOMIC_ACQUIRE);
	const char *at = id ? names_at(memory, id) : NULL;
	size_t count = at ? bits_min((uint8_t)*at++, max) : 0;

	for (size_t i = 0; i < count; i++) {
		struct debug_log_frame *frame = &ret_frames[i];

		memcpy(&frame->offset, at, sizeof(frame->offset));
		frame->module = at + sizeof(frame->offset);
		frame->symbol = frame->module + strlen(frame->module) + 1;
		frame->name = frame->symbol + strlen(frame->symbol) + 1;
		at = frame->name + strlen(frame->name) + 1;
		if (!*frame->name)
			frame->name = frame->symbol;
	}
	return count;
}
