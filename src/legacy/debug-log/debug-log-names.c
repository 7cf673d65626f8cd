/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A table from stack ids to offsets in one block of memory that only grows. An entry's data is
 * complete before the table points to it. What calls others is done before the lock is taken: the loader
 * may wait for a thread that waits for us.
 */

#include "legacy/debug-log/debug-log-names.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "base/process/private.h"
#include "base/threads/lock.h"
#include "lib/process/block-signals.h"
#include "lib/process/linked.h"

/*
 * At an offset: the number of frames, and for each its offset, module, symbol and decoded name (empty = as
 * the symbol), all three with NUL.
 */
struct names_memory {
	uint64_t table[DEBUG_LOG_NAMES_STACKS]; /* id << 32 | offset + 1; 0 = empty */
	uint32_t used, stacks;
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

/* A frame whose names are where the loader, or malloc(), has put them. */
struct names_frame {
	const char *module;
	const char *symbol; /* NULL = unknown */
	char *name;         /* decoded, or NULL; owned */
	uint64_t offset;
};

/* False: the address is unknown, or the frame @is_first and only reports. */
static bool names_find_frame(uintptr_t address, bool is_first, struct names_frame *ret_frame)
{
	const char *slash;
	Dl_info info;

	/* The return address may already be in the next function. */
	if (!linked_place((const void *)(address - 1), &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	*ret_frame = (struct names_frame){
		.module = slash ? slash + 1 : info.dli_fname,
		.symbol = info.dli_sname,
		.offset = address - (uintptr_t)(info.dli_sname ? info.dli_saddr : info.dli_fbase),
	};
	return !is_first || !names_is_reporting(ret_frame->module, ret_frame->symbol);
}

/*
 * libstdc++ refuses longer names, in older versions by its size of the stack. A test has found no name that
 * takes more than 500 bytes of the stack for each of its own.
 */
#define NAMES_DECODED_MAX 1023u
#define NAMES_DECODING(length) (65536u + 2048u * (length))

typedef char *(*names_decode_fn)(const char *name, char *buffer, size_t *length, int *status);

/* That of libstdc++, which then stays; NULL = the process had none when one was needed first. */
static names_decode_fn names_decoder(void)
{
	static names_decode_fn known;
	static bool is_known;
	void *library, *found;
	names_decode_fn decode;

	if (__atomic_load_n(&is_known, __ATOMIC_ACQUIRE))
		return __atomic_load_n(&known, __ATOMIC_RELAXED);
	library = linked_open("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	found = library ? linked_symbol(library, "__cxa_demangle") : NULL;
	memcpy(&decode, &found, sizeof(decode)); /* C has no cast to a function pointer */
	__atomic_store_n(&known, decode, __ATOMIC_RELAXED);
	__atomic_store_n(&is_known, true, __ATOMIC_RELEASE);
	return decode;
}

/* NULL: it is not the name of a C++ function, or cannot be decoded, or not here. */
static char *names_decode(const char *symbol, size_t room)
{
	size_t length = strnlen(symbol, NAMES_DECODED_MAX + 1);
	names_decode_fn decode;
	int status;

	if (strncmp(symbol, "_Z", 2) != 0 || length > NAMES_DECODED_MAX ||
	    room < NAMES_DECODING(length))
		return NULL;
	decode = names_decoder();
	return decode ? decode(symbol, NULL, NULL, &status) : NULL;
}

/* Return: how many frames. */
static size_t names_find_frames(const uintptr_t *addresses, size_t count, size_t room,
				struct names_frame *ret_frames)
{
	size_t n = 0;

	for (size_t i = 0; i < count && n < DEBUG_LOG_NAMES_FRAMES; i++) {
		struct names_frame *frame = &ret_frames[n];

		if (!names_find_frame(addresses[i], n == 0, frame))
			continue;
		if (frame->symbol)
			frame->name = names_decode(frame->symbol, room);
		n++;
	}
	return n;
}

static char *names_put_frame(char *to, const struct names_frame *frame)
{
	const char *name = frame->name;

	if (!name || strlen(name) > DEBUG_LOG_NAMES_SYMBOL_MAX)
		name = "";
	memcpy(to, &frame->offset, sizeof(frame->offset));
	to = names_put_text(to + sizeof(frame->offset), frame->module, DEBUG_LOG_NAMES_MODULE_MAX);
	to = names_put_text(to, frame->symbol ? frame->symbol : "", DEBUG_LOG_NAMES_SYMBOL_MAX);
	return names_put_text(to, name, DEBUG_LOG_NAMES_SYMBOL_MAX);
}

/* With the lock held. */
static void names_add(struct names_memory *memory, uint32_t id, const struct names_frame *frames,
		      size_t count)
{
	uint32_t place = memory->used, i = 0;
	char *to = memory->bytes + place + 1;

	for (size_t n = 0; n < count; n++)
		to = names_put_frame(to, &frames[n]);
	memory->bytes[place] = (char)count;
	memory->used = (uint32_t)(to - memory->bytes);
	memory->stacks++;
	while (*names_slot(memory, id, i))
		i++;
	/* Pairs with the acquire in names_at(). */
	__atomic_store_n(names_slot(memory, id, i), (uint64_t)id << 32 | (place + 1),
			 __ATOMIC_RELEASE);
}

static void names_keep(uint32_t id, const struct names_frame *frames, size_t count)
{
	struct names_memory *memory;

	if (!lock_take(&names_lock))
		return;
	memory = names_memory;
	if (!memory) {
		memory = private_map(sizeof(*memory));
		__atomic_store_n(&names_memory, memory, __ATOMIC_RELEASE);
	}
	if (memory && memory->stacks < DEBUG_LOG_NAMES_STACKS / 4 * 3 &&
	    memory->used + 1 + DEBUG_LOG_NAMES_FRAMES * NAMES_FRAME_MAX <= sizeof(memory->bytes) &&
	    !names_at(memory, id))
		names_add(memory, id, frames, count);
	lock_drop(&names_lock);
}

void debug_log_names_learn(uint32_t id, const uintptr_t *addresses, size_t count, size_t room)
{
	struct names_frame frames[DEBUG_LOG_NAMES_FRAMES];
	struct block_signals block_signals;
	size_t n;

	if (id == 0 || names_at(__atomic_load_n(&names_memory, __ATOMIC_ACQUIRE), id))
		return;
	/* A handler that left by siglongjmp() would leave locks of libc held. */
	block_signals_begin(&block_signals);
	n = names_find_frames(addresses, count, room, frames);
	names_keep(id, frames, n);
	/* Without decoded names, free() must not be called either; it may be the program's. */
	for (size_t i = 0; i < n; i++) {
		if (frames[i].name)
			free(frames[i].name);
	}
	block_signals_end(&block_signals);
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
