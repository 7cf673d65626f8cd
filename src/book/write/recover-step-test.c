/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thread leaves an event at every single instruction, by the processor's trap flag. Then what it left is
 * recovered, and whatever has happened to that event, the device goes on.
 */

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/testing/unit.h"
#include "book/testing/book-testing.h"
#include "book/write/writer.h"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static struct testing_book rstep_book;

static void rstep_alloc(uint32_t device, uint64_t address)
{
	struct shard_buffer buffer = testing_buffer(1, address, 8);

	writer_alloc(rstep_book.writer, device, &buffer, 0);
}

static void rstep_free(uint32_t device, uint64_t address)
{
	struct shard_buffer who = testing_buffer(1, address, 8);

	writer_free_buffer(rstep_book.writer, device, &who);
}

static struct view *rstep_view(void)
{
	static struct view view;

	assert(view_read(&view, &rstep_book.reader, 0, VIEW_DEAD) == 0);
	assert(view.rows_exact && view.adds_up);
	return &view;
}

static struct book_rejected rstep_rejected(void)
{
	assert(reader_refresh(&rstep_book.reader) == 0);
	return rstep_book.reader.header.rejected;
}

#define RSTEP_FLAG 0x100
#define RSTEP_LIVE 112u /* one more splits a bucket of the index */

static sigjmp_buf rstep_back;
static volatile long rstep_left;

static void rstep_trap(int number, siginfo_t *info, void *context)
{
	if (--rstep_left == 0)
		siglongjmp(rstep_back, 1);
}

static inline __attribute__((always_inline)) void rstep_on(void)
{
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(RSTEP_FLAG) : "memory", "cc");
}

static inline __attribute__((always_inline)) void rstep_off(void)
{
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~RSTEP_FLAG) : "memory", "cc");
}

struct rstep {
	struct shard_buffer buffer;
	uint64_t owner;
	uint32_t live; /* before */
	bool is_free;
};

/* Whether the event ended before that many steps. */
static bool rstep_event(const struct rstep *step, long steps)
{
	rstep_left = steps;
	if (sigsetjmp(rstep_back, 1))
		return false;
	rstep_on();
	if (step->is_free)
		writer_free_buffer(rstep_book.writer, 0, &step->buffer);
	else
		writer_alloc(rstep_book.writer, 0, &step->buffer, step->owner);
	rstep_off();
	return true;
}

/* Whatever has happened, all that is said to be live can be freed, and slots are used once. */
static void rstep_check(uint32_t live)
{
	for (uint64_t i = 0; i <= live; i++)
		rstep_free(0, i);
	assert(rstep_view()->live == 0 && rstep_view()->hot[1].bytes == 0);
	assert(rstep_view()->warm[1].occupied == 0);
	for (uint64_t i = 0; i < 2 * RSTEP_LIVE; i++)
		rstep_alloc(0, i);
	assert(rstep_view()->live == 2 * RSTEP_LIVE);
	assert(rstep_view()->hot[1].bytes == 2 * RSTEP_LIVE * 8);
	for (uint64_t i = 0; i < 2 * RSTEP_LIVE; i++)
		rstep_free(0, i);
}

/* A book for every step only where the event is different the second time: making one takes long. */
static void rstep_prepare(const struct rstep *step, bool is_first, struct shard_buffer *buffer)
{
	if (is_first)
		testing_book_open(&rstep_book);
	*buffer = step->buffer;
	buffer->thread = (uint32_t)gettid();
	if (buffer->shape)
		buffer->shape = testing_interleaved(rstep_book.writer, 4096);
	for (uint64_t i = 0; i < step->live; i++)
		rstep_alloc(0, i);
	if (step->is_free && buffer->shape)
		writer_alloc(rstep_book.writer, 0, buffer, 0);
}

static void rstep_run(const struct rstep *step)
{
	const struct sigaction action = {.sa_sigaction = rstep_trap, .sa_flags = SA_SIGINFO};
	uint32_t recovered = 0, unnamed = 0;
	bool is_over = false, is_fresh = true;

	assert(sigaction(SIGTRAP, &action, NULL) == 0);
	for (long steps = 1; !is_over; steps++) {
		struct rstep now = *step;
		struct lock *lock;
		uint64_t rejected;
		bool was_held;

		rstep_prepare(step, is_fresh, &now.buffer);
		lock = &rstep_book.writer->shards[0]->lock;
		rejected = rstep_rejected().lock;
		is_over = rstep_event(&now, steps);
		rstep_book.writer->incident_lock = LOCK_NULL; /* the device's lock is meant here */
		was_held = lock->word & LOCK_HELD;
		is_fresh = step->live == RSTEP_LIVE;
		if (was_held && !lock->holder) {
			unnamed++; /* between taking the lock and giving a name */
			is_fresh = true;
		} else {
			writer_drop_left(rstep_book.writer, (uint32_t)gettid());
			assert(!(lock->word & LOCK_HELD));
			assert(rstep_rejected().lock == rejected + was_held);
			recovered += was_held;
			rstep_check(step->live);
		}
		if (is_fresh || is_over)
			testing_book_deinit(&rstep_book);
	}
	assert(recovered > 50 && unnamed == 0);
}

UNIT_LONG(an_allocation_is_left_at_any_instruction, 240)
{
	rstep_run(&(struct rstep){.buffer = testing_buffer(1, RSTEP_LIVE, 8), .live = RSTEP_LIVE});
}

UNIT_LONG(an_allocation_with_an_owner_is_left_at_any_instruction, 240)
{
	rstep_run(&(struct rstep){.buffer = {.address = 10, .size = 8, .type = 1, .shape = 1},
				  .live = 10,
				  .owner = 1});
}

UNIT_LONG(a_free_is_left_at_any_instruction, 240)
{
	rstep_run(&(struct rstep){.buffer = testing_buffer(1, 5, 8), .live = 10, .is_free = true});
}

UNIT_LONG(a_free_with_a_shape_is_left_at_any_instruction, 240)
{
	rstep_run(&(struct rstep){.buffer = {.address = 10, .size = 8, .type = 1, .shape = 1},
				  .live = 10,
				  .is_free = true});
}

UNIT_LONG(a_size_change_is_left_at_any_instruction, 240)
{
	rstep_run(&(struct rstep){.buffer = testing_buffer(1, 5, 16), .live = 10});
}

UNIT_LONG(one_more_reference_is_left_at_any_instruction, 240)
{
	rstep_run(&(struct rstep){.buffer = testing_buffer(1, 10, 8), .live = 10});
}

#else

UNIT(left_at_any_instruction)
{
	unit_skip("needs the trap flag of x86-64, and no sanitizer");
}

#endif
