/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Learning: the first words of a Buffer are copied and searched for values that are known in another way.
 * Each buffer rules out places, until two buffers of different size have been seen and one place is left.
 * From then on the device and the allocator are read there, and the size is still compared each time.
 */

#include "metal/metal-learn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "metal/metal-lock.h"
#include "metal/metal-names.h"
#include "metal/metal-refuse.h"

/* All versions have what is searched for in the first 96 bytes, and are longer than 128. */
#define METAL_LEARN_WORDS 16

/* Buffers of one size after which nothing more is waited for. */
#define METAL_LEARN_PATIENCE 64

/* Buffers that may belong to sub-devices before one confirms its device. */
#define METAL_LEARN_SUB_DEVICES 64

/* Places in a Buffer: bit N is word N. */
struct metal_places {
	uint32_t size;
	uint32_t address;
	uint32_t device;
	uint32_t allocator;
	bool is_default; /* the allocator is the device's own */
};

static struct {
	bool is_done;      /* atomic; from then on the rest is final */
	bool is_confirmed; /* the device's allocator was a buffer's */
	uint32_t buffers;
	uint32_t strangers; /* whose allocator is not their device's */
	uint64_t first_size;
	struct metal_places places;
	uint32_t device; /* words, once it is done */
	uint32_t allocator;
	char note[256];
} metal_learned = {.places = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}};

/* Any call to the kernel tells whether memory is there, and a pipe gives it back. */
int metal_learn_peek_by_pipe(const void *from, void *to, size_t size)
{
	ssize_t n;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	n = write(ends[1], from, size);
	if (n == (ssize_t)size)
		n = read(ends[0], to, size);
	cleanup_close(&ends[0]);
	cleanup_close(&ends[1]);
	return n == (ssize_t)size ? 0 : -EFAULT;
}

int metal_learn_copy(const void *from, void *to, size_t size)
{
	union {
		const void *in;
		void *out;
	} remote = {.in = from};
	struct iovec local_part = {to, size}, remote_part = {remote.out, size};

	if (process_vm_readv(getpid(), &local_part, 1, &remote_part, 1, 0) == (ssize_t)size)
		return 0;
	if (errno == EFAULT)
		return -EFAULT;
	return metal_learn_peek_by_pipe(from, to,
					size); /* sandboxes and emulators refuse the other */
}

static int metal_learn_peek(const void *from, void *to, size_t size)
{
	int r = metal_learn_copy(from, to, size);

	if (r < 0 && r != -EFAULT)
		metal_refuse("its objects cannot be checked: %s", strerrordesc_np(-r));
	return r < 0 ? -EFAULT : 0;
}

static bool metal_learn_is_device(const struct metal_names *names, uintptr_t word)
{
	const void *table, *object;

	if (word == 0 || word % sizeof(void *) != 0)
		return false;
	memcpy(&object, &word, sizeof(object));
	return metal_learn_peek(object, &table, sizeof(table)) == 0 &&
	       (table == names->device_table || table == names->mesh_table);
}

static uint32_t metal_learn_equal(const uint64_t *words, uint64_t value)
{
	uint32_t places = 0;

	for (uint32_t i = 0; i < METAL_LEARN_WORDS; i++)
		places |= (uint32_t)(words[i] == value) << i;
	return places;
}

/* tt-metal counts pages in 32 bits: a size may have more, of which the lower bits are counted. */
static bool metal_learn_is_wrapped(const struct metal_facts *facts, uint64_t word)
{
	uint64_t pages = word / facts->page_size;

	return pages > UINT32_MAX && word % facts->page_size == 0 &&
	       (uint32_t)pages == facts->pages;
}

/* Where a size may be; if its pages were too many to count, it is corrected. */
static uint32_t metal_learn_sizes(const uint64_t *words, struct metal_facts *facts)
{
	uint32_t places = metal_learn_equal(words, facts->size);

	for (uint32_t i = 0; !places && i < METAL_LEARN_WORDS; i++) {
		if (metal_learn_is_wrapped(facts, words[i])) {
			facts->size = words[i];
			places = metal_learn_equal(words, facts->size);
		}
	}
	return places;
}

static bool metal_learn_is_one(uint32_t places)
{
	return __builtin_popcount(places) == 1;
}

static const void *metal_learn_word(const void *buffer, uint32_t word)
{
	const void *value;

	memcpy(&value, (const char *)buffer + word * sizeof(uint64_t), sizeof(value));
	return value;
}

const void *metal_learn_own_allocator(const struct metal_names *names, const void *device)
{
	const void *table = *(const void *const *)device;

	return table == names->mesh_table ? *names->mesh_allocator(device)
					  : *names->device_allocator(device);
}

/*
 * Since 0.66, an Allocator consists of a pointer to the one that Buffer keeps and that clear() is called
 * for; that it does is checked by finding it in the Buffer. Before, they were the same.
 */
static int metal_learn_allocator(const struct metal_names *names, const void *buffer,
				 const uint64_t *words, struct metal_facts *facts,
				 struct metal_places *seen)
{
	const void *own = metal_learn_own_allocator(names, facts->device);
	const void *api = names->buffer_allocator ? names->buffer_allocator(buffer) : own;

	facts->allocator = api;
	if (names->buffer_allocator &&
	    metal_learn_peek(api, &facts->allocator, sizeof(facts->allocator)) < 0)
		return -EFAULT;
	seen->allocator = metal_learn_equal(words, (uintptr_t)facts->allocator);
	/* An older version's buffer in a sub-device says nothing about its allocator. */
	seen->is_default = api == own && (names->buffer_allocator || seen->allocator);
	return 0;
}

/* Writes what is known; called with the lock held. */
static void metal_learn_describe(const struct metal_names *names)
{
	const struct metal_places *places = &metal_learned.places;

	(void)snprintf(metal_learned.note, sizeof(metal_learned.note),
		       "size=page_size*num_pages,+%d address=address(),+%d device=+%u%s "
		       "allocator=%s+%u id=%s banks=%s cb=%s close=%s",
		       (__builtin_ffs((int)places->size) - 1) * 8,
		       (__builtin_ffs((int)places->address) - 1) * 8, metal_learned.device * 8,
		       metal_learned.is_confirmed ? ",allocator()" : "",
		       names->buffer_allocator ? "allocator()," : "", metal_learned.allocator * 8,
		       !names->has_ids   ? "get_device_ids()"
		       : names->mesh_ids ? "vtable,get_device_ids()"
					 : "vtable",
		       names->bank_count && names->bank_size ? "allocator" : "unknown",
		       !names->track_cb   ? "unknown"
		       : !names->cb_total ? "union"
					  : "get_total_cb_allocated()",
		       names->clear ? "clear()" : "unknown");
}

static const char *metal_learn_contradiction(const struct metal_places *places)
{
	if (!places->size)
		return "a buffer's size is not page_size() x num_pages()";
	if (!places->address)
		return "a buffer's address is not what address() says";
	if (!places->device)
		return "a buffer has no device";
	if (!places->allocator)
		return "a buffer's allocator is not what allocator() says";
	return NULL;
}

/* Combines what one buffer showed with what is known. With the lock held. */
static void metal_learn_combine(const struct metal_names *names, const struct metal_facts *facts,
				const struct metal_places *seen)
{
	struct metal_places *places = &metal_learned.places;
	const char *contradiction;

	places->size &= seen->size;
	places->device &= seen->device;
	if (facts->address)
		places->address &= seen->address;
	if (names->buffer_allocator || seen->is_default)
		places->allocator &= seen->allocator;
	metal_learned.is_confirmed |= seen->is_default;
	metal_learned.strangers += !seen->is_default;
	contradiction = metal_learn_contradiction(places);
	if (!contradiction && !metal_learned.is_confirmed &&
	    metal_learned.strangers >= METAL_LEARN_SUB_DEVICES)
		contradiction = "no buffer's allocator is that of its device";
	if (contradiction) {
		metal_refuse("%s: %s", names->library, contradiction);
		return;
	}
	if (metal_learned.buffers++ == 0)
		metal_learned.first_size = facts->size;
	if (metal_learned.first_size == facts->size && metal_learned.buffers < METAL_LEARN_PATIENCE)
		return;
	if (!metal_learn_is_one(places->device) || !metal_learned.is_confirmed)
		return;
	metal_learned.device = (uint32_t)__builtin_ctz(places->device);
	metal_learned.allocator = (uint32_t)__builtin_ctz(places->allocator);
	metal_learn_describe(names);
	/* Matched by the acquire load in metal_learn(). */
	__atomic_store_n(&metal_learned.is_done, true, __ATOMIC_RELEASE);
}

/*
 * Where this buffer may have its device, by all that were seen. One of them alone may have several: members without
 * a value contain what an object before it has left there.
 */
static uint32_t metal_learn_devices(const struct metal_names *names, const uint64_t *words)
{
	uint32_t places = 0;

	for (uint32_t i = 0; i < METAL_LEARN_WORDS; i++)
		places |= (uint32_t)metal_learn_is_device(names, (uintptr_t)words[i]) << i;
	if (metal_learn_is_one(places))
		return places;
	metal_lock();
	places &= metal_learned.places.device;
	metal_unlock();
	return places;
}

/* tt-metal's functions are called first, without the lock. */
static int metal_learn_from(const struct metal_names *names, const void *buffer,
			    struct metal_facts *facts)
{
	uint64_t words[METAL_LEARN_WORDS];
	struct metal_places seen = {0};

	if (metal_learn_peek(buffer, words, sizeof(words)) < 0)
		return METAL_LEARN_UNKNOWN;
	seen.size = metal_learn_sizes(words, facts);
	seen.address = metal_learn_equal(words, facts->address);
	seen.device = metal_learn_devices(names, words);
	if (!metal_learn_is_one(seen.device)) {
		metal_refuse("%s: a buffer has %s", names->library,
			     seen.device ? "several devices" : "no device");
		return METAL_LEARN_UNKNOWN;
	}
	facts->device = metal_learn_word(buffer, (uint32_t)__builtin_ctz(seen.device));
	if (metal_learn_allocator(names, buffer, words, facts, &seen) < 0)
		return METAL_LEARN_UNKNOWN;
	metal_lock();
	if (!metal_refused())
		metal_learn_combine(names, facts, &seen);
	metal_unlock();
	return metal_refused() || !seen.allocator ? METAL_LEARN_UNKNOWN : 0;
}

uint32_t metal_learn_size_places(void)
{
	return __atomic_load_n(&metal_learned.is_done, __ATOMIC_ACQUIRE) ? metal_learned.places.size
									 : UINT32_MAX;
}

uint32_t metal_learn_device_places(void)
{
	return __atomic_load_n(&metal_learned.is_done, __ATOMIC_ACQUIRE)
		       ? metal_learned.places.device
		       : UINT32_MAX;
}

/*
 * In each of the places where it was always found there may be something else that was equal so far. A size of
 * too many pages is corrected.
 */
static bool metal_learn_has_size(const void *buffer, struct metal_facts *facts)
{
	for (uint32_t places = metal_learned.places.size; places; places &= places - 1) {
		uint64_t word =
			(uintptr_t)metal_learn_word(buffer, (uint32_t)__builtin_ctz(places));

		if (word != facts->size && !metal_learn_is_wrapped(facts, word))
			continue;
		facts->size = word;
		return true;
	}
	return false;
}

static int metal_learn_apply(const struct metal_names *names, const void *buffer,
			     struct metal_facts *facts)
{
	const void *table;

	facts->device = metal_learn_word(buffer, metal_learned.device);
	facts->allocator = metal_learn_word(buffer, metal_learned.allocator);
	table = *(const void *const *)facts->device;
	if (metal_learn_has_size(buffer, facts) &&
	    (table == names->device_table || table == names->mesh_table))
		return 0;
	metal_refuse("%s: a buffer differs from those before it", names->library);
	return METAL_LEARN_UNKNOWN;
}

/**
 * metal_learn() - what a buffer says about itself
 * @names: tt-metal's functions
 * @buffer: one that was just allocated
 * @ret_facts: all of it, if 0 is returned
 *
 * Return: 0, or METAL_LEARN_UNKNOWN: this buffer cannot be reported.
 */
int metal_learn(const struct metal_names *names, const void *buffer, struct metal_facts *ret_facts)
{
	ret_facts->page_size = names->page_size(buffer);
	ret_facts->pages = names->num_pages(buffer);
	ret_facts->size = ret_facts->page_size * ret_facts->pages;
	if (ret_facts->size == 0)
		return METAL_LEARN_UNKNOWN;
	ret_facts->address = names->address(buffer);
	if (__atomic_load_n(&metal_learned.is_done, __ATOMIC_ACQUIRE))
		return metal_learn_apply(names, buffer, ret_facts);
	return metal_learn_from(names, buffer, ret_facts);
}

const void *metal_learn_api(const struct metal_names *names, const void *buffer,
			    const struct metal_facts *facts, bool *ret_is_default)
{
	const void *own = metal_learn_own_allocator(names, facts->device);
	const void *api =
		names->buffer_allocator ? names->buffer_allocator(buffer) : facts->allocator;

	*ret_is_default = api == own;
	return api;
}

const char *metal_learn_note(void)
{
	return __atomic_load_n(&metal_learned.is_done, __ATOMIC_ACQUIRE) ? metal_learned.note : "";
}
