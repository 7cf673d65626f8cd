/* SPDX-License-Identifier: Apache-2.0 */

/* Threads: joining, phases and the events of interrupted calls. */

#include "lib/process/thread.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/process/freeze.h"
#include "book/write/writer.h"

/*
 * The path as text, and the end of each label. Text, because a forked child inherits the phases and
 * must intern them in its own book.
 */
struct thread_phases {
	uint32_t depth; /* may exceed THREAD_PHASES: further pushes only balance their pops */
	uint32_t id[THREAD_PHASES];
	uint16_t end[THREAD_PHASES];
	char path[BOOK_PATH_MAX + 1];
};

__thread struct thread thread_self __attribute__((tls_model("initial-exec")));

static pthread_key_t thread_key;
static uint32_t thread_key_state; /* 0 none, 1 being created, 2 ready */

static void thread_end(void *value)
{
	struct thread_phases *phases = value;

	thread_self.phases = NULL;
	thread_self.phase = 0;
	(void)munmap(phases, sizeof(*phases)); /* ours and whole: cannot fail */
}

/* Frees the phases when their thread ends. If there is no key left they leak: a page. */
static void thread_keep(struct thread_phases *phases)
{
	uint32_t none = 0;

	if (__atomic_compare_exchange_n(&thread_key_state, &none, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		if (pthread_key_create(&thread_key, thread_end) == 0)
			__atomic_store_n(&thread_key_state, 2, __ATOMIC_RELEASE);
	}
	if (__atomic_load_n(&thread_key_state, __ATOMIC_ACQUIRE) == 2)
		(void)pthread_setspecific(thread_key, phases); /* ENOMEM: as without a key */
}

/* Not private_map(): a forked child needs this memory. */
static struct thread_phases *thread_make_phases(void)
{
	int saved_errno = errno;
	struct thread_phases *phases;

	if (freeze_is_on())
		return NULL;
	phases = mmap(NULL, sizeof(*phases), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	if (phases == MAP_FAILED)
		phases = NULL;
	else
		thread_keep(phases);
	if (phases)
		(void)madvise(phases, sizeof(*phases), MADV_DONTDUMP); /* only advice */
	errno = saved_errno;
	return phases;
}

static uint32_t thread_named_depth(const struct thread_phases *phases)
{
	return phases->depth < THREAD_PHASES ? phases->depth : THREAD_PHASES;
}

void thread_join(struct thread *self, struct writer *writer, uint32_t instance)
{
	struct thread_phases *phases = self->phases;

	self->tid = freeze_is_on() ? 0 : (uint32_t)gettid();
	self->instance = instance;
	self->phase = 0;
	self->stack = 0; /* an id of another book */
	if (!phases || phases->depth == 0)
		return;
	for (uint32_t i = 0; i < thread_named_depth(phases); i++) {
		char after = phases->path[phases->end[i]];

		phases->path[phases->end[i]] = '\0';
		phases->id[i] = intern_string(writer, phases->path, BOOK_PATH_MAX);
		phases->path[phases->end[i]] = after;
	}
	self->phase = phases->id[thread_named_depth(phases) - 1];
}

void thread_prepare(struct thread *self)
{
	if (!self->phases)
		self->phases = thread_make_phases();
}

void thread_push(struct thread *self, struct writer *writer, const char *name)
{
	struct thread_phases *phases = self->phases;
	size_t end, length;
	uint32_t depth;

	if (!phases)
		phases = self->phases = thread_make_phases();
	if (!phases)
		return;
	depth = phases->depth++;
	if (depth >= THREAD_PHASES)
		return;
	end = depth ? phases->end[depth - 1] : 0;
	length = intern_length(name, BOOK_NAME_MAX);
	/* A path that would become too long stays as it is. */
	if (end + 1 + length <= BOOK_PATH_MAX) {
		if (end)
			phases->path[end++] = '/';
		memcpy(phases->path + end, name, length);
		end += length;
	}
	phases->path[end] = '\0';
	phases->end[depth] = (uint16_t)end;
	phases->id[depth] = intern_string(writer, phases->path, BOOK_PATH_MAX);
	self->phase = phases->id[depth];
}

void thread_pop(struct thread *self)
{
	struct thread_phases *phases = self->phases;
	uint32_t depth;

	if (!phases || phases->depth == 0)
		return;
	depth = --phases->depth;
	if (depth >= THREAD_PHASES)
		return;
	self->phase = depth ? phases->id[depth - 1] : 0;
}

bool thread_defer(struct thread *self, const struct thread_deferred *event)
{
	/*
	 * This step takes a slot; a handler that interrupts us from here on gets the next one, and
	 * all of them are written before the interrupted call continues and drains them.
	 */
	union thread_queue queue = {
		.word = __atomic_fetch_add(&self->deferred.word, 1, __ATOMIC_RELAXED)};

	if (queue.count >= THREAD_DEFERRED) {
		__atomic_fetch_sub(&self->deferred.word, 1, __ATOMIC_RELAXED);
		return false;
	}
	self->slots[(queue.head + queue.count) % THREAD_DEFERRED] = *event;
	compiler_barrier();
	return true;
}

void thread_drain(struct thread *self, struct writer *writer)
{
	const union thread_queue next = {.count = UINT16_MAX, .head = 0}; /* count - 1, head + 1 */

	while (self->deferred.count) {
		struct thread_deferred event;

		compiler_barrier();
		event = self->slots[self->deferred.head % THREAD_DEFERRED];
		compiler_barrier();
		__atomic_fetch_add(&self->deferred.word, next.word, __ATOMIC_RELAXED);
		event.buffer.thread = self->tid; /* it may have interrupted thread_join() */
		if (event.is_free)
			writer_free_buffer(writer, event.device, &event.buffer);
		else
			writer_alloc(writer, event.device, &event.buffer, event.owner);
		compiler_barrier();
	}
}
