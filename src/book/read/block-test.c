/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading pairs of counter blocks while they are overwritten, with the code that the module uses.
 * Once step by step, with every point at which the owner may continue between two loads; once at
 * full speed.
 */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/writer.h"

/* Each load first lets the owner run. */
static void (*block_pause)(void);

static uint64_t block_load(const uint64_t *word)
{
	block_pause();
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

#define BLOCK_LOAD(word) block_load(word)
#define BLOCK_LOAD_BARRIER() bits_load_barrier()
#include "kernel/block.h"

#define BLOCK_STEPS 24u /* of the owner in one pause: three blocks */
#define BLOCK_LOADS 11u /* of one block_read() */

typedef bool block_read_fn(const uint64_t *pair, uint64_t ret_block[BLOCK_WORDS]);

/* An earlier version of the module: it checked only the copied block's own number. */
static bool block_read_one_number(const uint64_t *pair, uint64_t ret_block[BLOCK_WORDS])
{
	uint64_t first = BLOCK_LOAD(&pair[BLOCK_NUMBER]);
	uint64_t second = BLOCK_LOAD(&pair[BLOCK_WORDS + BLOCK_NUMBER]);
	const uint64_t *block = pair + block_current(first, second) * BLOCK_WORDS;

	BLOCK_LOAD_BARRIER();
	for (uint32_t i = 0; i < BLOCK_NUMBER; i++)
		ret_block[i] = BLOCK_LOAD(&block[i]);
	ret_block[BLOCK_NUMBER] = block_newest(first, second);
	BLOCK_LOAD_BARRIER();
	return BLOCK_LOAD(&block[BLOCK_NUMBER]) == ret_block[BLOCK_NUMBER];
}

/* An owner that makes one store at a time: every word of a block is its event number. */
static struct {
	uint64_t pair[2 * BLOCK_WORDS];
	uint64_t stores;
	uint32_t load;                   /* that comes next */
	uint32_t steps[BLOCK_LOADS + 1]; /* before each of them */
} block_owner;

static void block_owner_step(void)
{
	uint64_t event = block_owner.stores / BLOCK_WORDS + 1;
	uint64_t word = block_owner.stores++ % BLOCK_WORDS;

	block_owner.pair[event % 2 * BLOCK_WORDS + word] = event;
}

static void block_owner_pause(void)
{
	for (uint32_t i = 0; i < block_owner.steps[block_owner.load]; i++)
		block_owner_step();
	block_owner.load++;
}

/* Whether @read accepts figures of different events if the owner has made @stores before it. */
static bool block_is_fooled(block_read_fn *read, uint64_t stores)
{
	uint64_t block[BLOCK_WORDS];

	block_owner.load = 0;
	block_owner.stores = 0;
	for (uint32_t i = 0; i < 2 * BLOCK_WORDS; i++)
		block_owner.pair[i] = 0;
	while (block_owner.stores < stores)
		block_owner_step();
	if (!read(block_owner.pair, block))
		return false;
	for (uint32_t i = 0; i < BLOCK_NUMBER; i++) {
		if (block[i] != block[BLOCK_NUMBER])
			return true;
	}
	return false;
}

/* All ways in which the owner continues in two of the pauses. */
static uint64_t block_count_fooled(block_read_fn *read)
{
	uint64_t fooled = 0;

	block_pause = block_owner_pause;
	for (uint64_t stores = 0; stores < 4 * BLOCK_WORDS; stores++) {
		for (uint32_t i = 0; i < BLOCK_LOADS * BLOCK_LOADS; i++) {
			uint32_t *one = &block_owner.steps[i / BLOCK_LOADS];
			uint32_t *two = &block_owner.steps[i % BLOCK_LOADS];

			for (uint32_t n = 0; n < BLOCK_STEPS * BLOCK_STEPS; n++) {
				*one = n / BLOCK_STEPS;
				*two = n % BLOCK_STEPS;
				fooled += block_is_fooled(read, stores);
			}
			*one = *two = 0;
		}
	}
	return fooled;
}

UNIT(no_interleaving_makes_a_torn_block_pass)
{
	assert(block_count_fooled(block_read) == 0);
}

/* Otherwise the test above would prove nothing. */
UNIT(the_number_of_the_copied_block_alone_lets_torn_ones_pass)
{
	assert(block_count_fooled(block_read_one_number) > 1000);
}

UNIT(a_pair_at_rest_is_read_at_once)
{
	block_pause = block_owner_pause;
	for (uint64_t events = 0; events < 5; events++) {
		uint64_t block[BLOCK_WORDS];

		assert(!block_is_fooled(block_read, events * BLOCK_WORDS));
		block_owner.load = 0;
		assert(block_read(block_owner.pair, block) && block[0] == events);
	}
}

static uint32_t block_spins;

/* Longer and shorter than an event takes. */
static void block_spin(void)
{
	block_spins = (block_spins * 5 + 1) % 256;
	for (uint32_t i = block_spins / 4; i > 0; i--)
		compiler_barrier();
}

static void block_no_pause(void)
{
}

/* An application that does nothing else, until it is killed. */
static _Noreturn void block_write(struct testing_book *book)
{
	struct shard_buffer buffer = testing_buffer(0, 64, 64);

	assert(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	testing_book_write(book);
	for (;;) {
		writer_alloc(book->writer, 0, &buffer, 0);
		writer_free_buffer(book->writer, 0, &buffer);
	}
}

/* Reads until @wanted copies were complete; returns how many were not. */
static uint64_t block_race(const struct book_shard *shard, uint32_t wanted)
{
	uint64_t refused = 0;

	while (wanted > 0) {
		struct book_hot hot;

		if (!block_read((const uint64_t *)shard->hot[0], (uint64_t *)&hot)) {
			refused++;
			continue;
		}
		assert(hot.number == hot.allocs + hot.frees);
		assert(hot.buffers == hot.allocs - hot.frees && hot.bytes == 64 * hot.buffers);
		wanted--;
	}
	return refused;
}

UNIT(what_is_read_at_full_speed_is_whole)
{
	uint32_t wanted = testing_quick() ? 20000 : 400000;
	const struct book_shard *shard;
	struct testing_book book;
	uint64_t refused;
	pid_t child;

	testing_book_init(&book, TESTING_SIZE, BOOK_RING_MIN);
	child = fork();
	assert(child >= 0);
	if (child == 0)
		block_write(&book);
	shard = (const struct book_shard *)(const void *)(book.base + book_shard_offset(0));
	while (__atomic_load_n(&shard->hot[0][0].number, __ATOMIC_RELAXED) < 1000)
		(void)usleep(1000); /* the owner is about to start */
	block_pause = block_spin;
	refused = block_race(shard, wanted);
	block_pause = block_no_pause;
	printf("%u whole; refused %llu with pauses, %llu without\n", wanted,
	       (unsigned long long)refused, (unsigned long long)block_race(shard, wanted));
	assert(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	testing_book_deinit(&book);
}
